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

function scale([low, high, start, end, log]) {
  const f = log ? Math.log10 : v => v, a = f(low), b = f(high);
  return {at: v => start + (f(v) - a) / (b - a) * (end - start), start, end};
}

function interactive(figure) {
  const numbers = JSON.parse(figure.querySelector(".numbers").textContent), hidden = new Set();
  const panels = all(figure, ".panel").map((panel, i) => {
    const svg = panel.querySelector("svg.chart"), plot = panel.querySelector(".plot");
    const data = numbers[i], x = scale(data.x), y = scale(data.y);
    return {svg, plot, data, x, y, cross: svg.querySelector(".cross"), box: null};
  });
  const swatches = new Map();
  let last = null;

  for (const key of all(figure, ".key")) {
    const label = key.dataset.l, button = made("button", {type: "button"});
    swatches.set(label, key.querySelector("svg"));
    button.append(...key.childNodes);
    button.setAttribute("aria-pressed", "true");
    button.title = "Show or hide";
    key.append(button);
    const of = () => all(figure, "g.s").filter(group => group.dataset.l === label);
    const light = on => {
      figure.classList.toggle("dimmed", on && !hidden.has(label));
      of().forEach(group => group.classList.toggle("lit", on));
    };
    button.addEventListener("click", () => {
      hidden[hidden.has(label) ? "delete" : "add"](label);
      button.setAttribute("aria-pressed", String(!hidden.has(label)));
      of().forEach(group => group.classList.toggle("off", hidden.has(label)));
      light(button.matches(":hover"));
      if (last) show(last);
    });
    button.addEventListener("pointerenter", event => event.pointerType === "mouse" && light(true));
    button.addEventListener("pointerleave", () => light(false));
  }

  const card = (panel, title, rows, at) => {
    panel.box ??= panel.plot.appendChild(made("div", {className: "readout"}));
    const table = made("table");
    for (const [label, value, interval] of rows) {
      const row = table.insertRow(), name = row.insertCell();
      if (swatches.has(label)) name.append(swatches.get(label).cloneNode(true));
      name.append(label);
      row.insertCell().append(value);
      row.insertCell().append(made("small", {textContent: interval}));
    }
    panel.box.replaceChildren(made("b", {textContent: title}), table);
    panel.box.hidden = false;
    const share = at / 460;
    panel.box.style.left = share < .5 ? `calc(${share * 100}% + 14px)` : "";
    panel.box.style.right = share < .5 ? "" : `calc(${100 - share * 100}% + 14px)`;
  };

  const nearest = (list, want, x) => {
    let best = -1, gap = Infinity;
    list.forEach((v, i) => {
      const d = v == null ? Infinity : Math.abs(x.at(v) - want);
      if (d < gap) [best, gap] = [i, d];
    });
    return best;
  };

  function curves(panel, share) {
    const want = panel.x.start + share * (panel.x.end - panel.x.start), rows = [];
    let shown = null;
    for (const s of panel.data.s) {
      if (hidden.has(s.l)) continue;
      const i = nearest(s.x, want, panel.x);
      if (i < 0) continue;
      if (shown === null || Math.abs(panel.x.at(s.x[i]) - want) < Math.abs(panel.x.at(shown) - want)) shown = s.x[i];
      const interval = s.a && s.a[i] != null ? `[${exact(s.a[i])}, ${exact(s.b[i])}]` : "";
      rows.push([s.l, exact(s.m[i]), interval, s.m[i] ?? -Infinity]);
    }
    if (shown === null) return clear(panel);
    rows.sort((a, b) => b[3] - a[3]);
    const at = panel.x.at(shown);
    panel.cross.setAttribute("d", `M${at} ${panel.y.end}V${panel.y.start}`);
    card(panel, short(shown), rows, at);
  }

  function points(panel, px, py) {
    let best = null, gap = 900;
    for (const p of [panel.data.c, ...panel.data.p]) {
      if (hidden.has(p.l)) continue;
      p.x.forEach((v, i) => {
        if (v == null || p.m[i] == null) return;
        const d = (panel.x.at(v) - px) ** 2 + (panel.y.at(p.m[i]) - py) ** 2;
        if (d < gap) [best, gap] = [[p, i], d];
      });
    }
    if (!best) return clear(panel);
    const [p, i] = best, x = panel.x.at(p.x[i]), y = panel.y.at(p.m[i]);
    panel.cross.setAttribute("d", `M${x} ${y}V${panel.y.start}M${x} ${y}H${panel.x.start}`);
    card(panel, p === panel.data.c ? p.l : `${p.l}, seed ${i + 1}`,
      [[panel.svg.querySelector(".name").textContent, exact(p.x[i]), ""],
       [panel.svg.querySelector(".name.up").textContent, exact(p.m[i]), ""]], x);
  }

  const clear = panel => { panel.cross.setAttribute("d", ""); if (panel.box) panel.box.hidden = true; };
  const leave = () => { last = null; panels.forEach(clear); };
  function show(at) {
    last = at;
    for (const panel of panels) panel.data.p ? points(panel, at.px, at.py) : curves(panel, at.share);
  }

  for (const panel of panels) {
    const moved = event => {
      const box = panel.svg.getBoundingClientRect();
      const px = (event.clientX - box.left) / box.width * 460, py = (event.clientY - box.top) / box.height * 300;
      const share = Math.min(1, Math.max(0, (px - panel.x.start) / (panel.x.end - panel.x.start)));
      show({share, px, py});
    };
    panel.svg.addEventListener("pointermove", moved);
    panel.svg.addEventListener("pointerdown", moved);
    panel.svg.addEventListener("pointerleave", event => event.pointerType === "mouse" && leave());
    if (panel.data.p) continue;
    panel.svg.setAttribute("tabindex", "0");
    panel.svg.setAttribute("aria-label", panel.svg.getAttribute("aria-label") + " Left and right read the values.");
    panel.plot.setAttribute("aria-live", "polite");
    panel.svg.addEventListener("blur", leave);
    panel.svg.addEventListener("keydown", event => {
      const way = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (event.key === "Escape") leave();
      if (!way) return;
      event.preventDefault();
      const xs = [...new Set(panel.data.s.flatMap(s => s.x))].filter(v => v != null).sort((a, b) => a - b);
      const places = xs.map(v => (panel.x.at(v) - panel.x.start) / (panel.x.end - panel.x.start));
      const now = last ? places.findIndex(v => v >= last.share - 1e-9) : way > 0 ? -1 : places.length;
      show({share: places[Math.min(places.length - 1, Math.max(0, now + way))], px: 0, py: 0});
    });
  }
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
