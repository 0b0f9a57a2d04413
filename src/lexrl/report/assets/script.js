"use strict";
(() => {
const all = (from, what) => [...from.querySelectorAll(what)];
const made = (name, given = {}) => Object.assign(document.createElement(name), given);
const short = v => {
  const size = Math.abs(v), digits = n => String(+n.toPrecision(4));
  for (const [factor, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= factor * .9995) return digits(v / factor) + letter;
  return digits(v);
};
const exact = v => v == null ? "–" : Math.abs(v) >= 1e6 ? short(v) : String(+v.toPrecision(4));

function sortable(table) {
  const heads = all(table, "thead th"), body = table.tBodies[0];
  const value = (row, i) => {
    const cell = row.cells[i];
    return cell.dataset.v !== undefined ? +cell.dataset.v : null;
  };
  heads.forEach((head, i) => {
    const button = made("button", {type: "button"});
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(other => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows], numeric = rows.some(row => value(row, i) !== null);
      const text = row => row.cells[i].textContent.trim();
      rows.sort((a, b) => {
        if (!numeric) return (down ? -1 : 1) * text(a).localeCompare(text(b), "en", {numeric: true});
        const [p, q] = [value(a, i), value(b, i)];
        if (p === null || q === null) return (p === null) - (q === null);
        return (down ? -1 : 1) * (p - q);
      });
      body.append(...rows);
    });
  });
}

/* Charts are drawn when the page is made. When a pointer or the keyboard comes to one, Vega draws the same
   specification again, so that it answers; what is shown are the rows of its data. */
function rowsOf(columns) {
  const names = Object.keys(columns);
  return (columns[names[0]] ?? []).map((_, i) => Object.fromEntries(names.map(name => [name, columns[name][i]])));
}

function interactive(figure) {
  const hidden = new Set(), charts = all(figure, ".panel").map(panel => chart(panel, figure, hidden));
  for (const key of all(figure, ".key")) {
    const label = key.dataset.l, button = made("button", {type: "button", title: "Show or hide"});
    button.append(...key.childNodes);
    button.setAttribute("aria-pressed", "true");
    key.append(button);
    button.addEventListener("click", () => {
      hidden[hidden.has(label) ? "delete" : "add"](label);
      button.setAttribute("aria-pressed", String(!hidden.has(label)));
      charts.forEach(each => each.hide());
    });
  }
}

function chart(panel, figure, hidden) {
  const plot = panel.querySelector(".plot");
  const {spec, columns} = JSON.parse(panel.querySelector(".spec").textContent);
  const rows = rowsOf(columns), names = spec.usermeta;
  const readable = rows.filter(row => row.y !== null);
  const box = panel.appendChild(made("div", {className: "readout", hidden: true}));
  box.setAttribute("aria-live", "polite");
  let started = null, view = null, now = null;

  const start = () => started ??= draw();
  async function draw() {
    const place = made("div");
    const config = JSON.parse(document.getElementById("chart-config").textContent);
    const options = {renderer: "svg", mode: "vega-lite", ast: true, actions: false, defaultStyle: false, config, tooltip};
    const drawn = await vegaEmbed(place, {...spec, data: {values: rows}}, options);
    view = drawn.view;
    plot.replaceChildren(place);
    await hide();
    return view;
  }

  function tooltip(handler, event, item, value) {
    show(value ? rows[value.i] : null, event);
  }

  function show(row, event) {
    now = row;
    view?.signal("at", row ? row.i : -1).runAsync();
    box.hidden = !row;
    if (!row) return;
    const title = made("b", {textContent: row.label + (row.seed != null ? `, seed ${row.seed}` : "")});
    const table = made("table");
    const line = (name, value, interval) => {
      const cells = table.insertRow();
      cells.insertCell().append(name);
      cells.insertCell().append(value);
      cells.insertCell().append(made("small", {textContent: interval}));
    };
    const interval = (low, high) => low != null && high != null ? `[${exact(low)}, ${exact(high)}]` : "";
    line(names.x, short(row.x), interval(row.left, row.right));
    line(names.y, exact(row.y), interval(row.low, row.high));
    box.replaceChildren(title, table);
    const edge = panel.getBoundingClientRect();
    const at = event ? (event.clientX - edge.left) / edge.width : .5;
    box.style.left = at < .5 ? `calc(${at * 100}% + 16px)` : "";
    box.style.right = at < .5 ? "" : `calc(${100 - at * 100}% + 16px)`;
  }

  async function hide() {
    if (!view && !hidden.size) return;
    if (!view) return start();
    await view.signal("hidden", [...hidden]).runAsync();
    if (now && hidden.has(now.label)) show(null);
  }

  function move(key) {
    const shown = readable.filter(row => !hidden.has(row.label));
    if (!shown.length) return null;
    if (!now) return shown[0];
    const along = {ArrowRight: 1, ArrowLeft: -1}[key];
    const lines = [...new Set(shown.map(row => `${row.kind} ${row.label}`))], name = row => `${row.kind} ${row.label}`;
    if (along) {
      const own = shown.filter(row => name(row) === name(now));
      return own[Math.min(own.length - 1, Math.max(0, own.indexOf(now) + along))];
    }
    const next = lines[(lines.indexOf(name(now)) + (key === "ArrowDown" ? 1 : lines.length - 1)) % lines.length];
    const own = shown.filter(row => name(row) === next);
    return own.reduce((best, row) => Math.abs(row.x - now.x) < Math.abs(best.x - now.x) ? row : best);
  }

  plot.tabIndex = 0;
  plot.setAttribute("aria-label", plot.getAttribute("aria-label") + " Arrow keys read the values.");
  for (const kind of ["pointerenter", "pointerdown", "focus"]) plot.addEventListener(kind, start);
  plot.addEventListener("blur", () => show(null));
  plot.addEventListener("pointerleave", () => show(null));
  plot.addEventListener("keydown", async event => {
    if (event.key === "Escape") return show(null);
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    await start();
    show(move(event.key));
  });
  return {hide};
}

function enlarging() {
  const dialog = made("dialog"), image = made("img");
  dialog.append(image);
  document.body.append(dialog);
  dialog.addEventListener("click", () => dialog.close());
  for (const small of all(document, ".picture img")) {
    small.tabIndex = 0;
    small.setAttribute("role", "button");
    const open = () => { image.src = small.src; image.alt = small.alt; dialog.showModal(); };
    small.addEventListener("click", open);
    small.addEventListener("keydown", event => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); }
    });
  }
}

function contents() {
  const links = new Map(all(document, ".contents a").map(link => [link.hash.slice(1), link]));
  const fold = document.querySelector(".contents details");
  if (!fold) return;
  if (!matchMedia("(min-width: 78rem)").matches) fold.open = false;
  const watcher = new IntersectionObserver(seen => {
    for (const each of seen) if (each.isIntersecting) {
      links.forEach(link => link.removeAttribute("aria-current"));
      links.get(each.target.id)?.setAttribute("aria-current", "true");
    }
  }, {rootMargin: "-10% 0px -80% 0px"});
  all(document, ".chapter, .chapter > section").forEach(part => links.has(part.id) && watcher.observe(part));
}

all(document, "table.sortable").forEach(sortable);
all(document, "figure.charts").forEach(interactive);
enlarging();
contents();
addEventListener("beforeprint", () => all(document, "details").forEach(each => { each.open = true; }));
})();
