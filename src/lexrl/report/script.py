"""What the page of experiments looks like, and how it answers a pointer, a finger or a key.

Without the script every chart and table is there; with it tables sort, lines can be hidden, and values be read.
"""

from lexrl.report import looks


def _colours(of: tuple[str, ...]) -> str:
    return " ".join(f"--k{i}:{colour};" for i, colour in enumerate(of))


STYLE = (
    """
:root { color-scheme: light; --ink: #1f2328; --faint: #5f646b; --paper: #fff; --line: #e1e2e0; --card: #f6f6f4;
  --good: #0b6b3a; --bad: #a3200f; --open: #6a5200; --accent: #0059ca; LIGHT }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #e7e8e6; --faint: #a3a8ae; --paper: #16181b; --line: #34373c; --card: #202327;
    --good: #5fd394; --bad: #ff9180; --open: #e5c35a; --accent: #7db2ff; DARK }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 2.2rem 1.25rem 6rem; max-width: 64rem; color: var(--ink); background: var(--paper);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif; }
main { min-width: 0; } h1, h2, h3, h4, p, figcaption, .key { overflow-wrap: anywhere; }
a { color: var(--accent); text-underline-offset: .18em; text-decoration-thickness: 1px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
h1, h2.title { font: 600 clamp(1.75rem, 4.5vw, 2.35rem)/1.18 Charter, "Bitstream Charter", "Sitka Text", Cambria,
  Georgia, "Noto Serif", "Liberation Serif", serif; margin: 0 0 .8rem; letter-spacing: -.01em; text-wrap: balance; }
h2.title { font-size: clamp(1.55rem, 4vw, 1.95rem); }
h3 { font-size: 1.2rem; line-height: 1.3; font-weight: 650; margin: 0 0 .9rem; text-wrap: balance; }
h4 { font-size: .95rem; font-weight: 600; margin: 0 0 .1rem; }
p { margin: 0 0 .9rem; max-width: 44rem; }
small { color: var(--faint); font-size: .86em; }
code, pre { font: .86em/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace; }
code { overflow-wrap: anywhere; }
.cover { margin-bottom: 1rem; }
.kicker { color: var(--faint); font-size: .88rem; margin: 0 0 .5rem; }
.lead { color: var(--faint); font-size: 1.12rem; line-height: 1.5; max-width: 42rem; }
.chapter + .chapter, .cover + .chapter { margin-top: 3.5rem; padding-top: 3rem; border-top: 1px solid var(--line); }
.chapter > section { margin-top: 3rem; }
.notice { border-left: 3px solid var(--bad); background: var(--card); padding: .7rem 1rem; border-radius: 0 6px 6px 0; }
.chapter figure { margin: 0; }
figcaption, .caption { color: var(--faint); font-size: .88rem; line-height: 1.5; margin-top: .8rem; }
figcaption { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; justify-content: space-between; align-items: baseline; }
figcaption > span:first-child { max-width: 42rem; }
.csv { white-space: nowrap; margin-left: auto; }

.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem .2rem; margin: 0 0 1rem -.5rem; padding: 0; }
.key { display: inline-flex; align-items: center; font-size: .88rem; padding: .15rem .5rem; }
.key button { all: unset; display: inline-flex; align-items: center; cursor: pointer; padding: .2rem .5rem;
  margin: -.15rem -.5rem; border-radius: 5px; min-height: 1.75rem; }
.key button:hover { background: var(--card); }
.key button:focus-visible { outline: 2px solid var(--accent); }
.key button[aria-pressed=false] { color: var(--faint); text-decoration: line-through; }
.key button[aria-pressed=false] .swatch { opacity: .25; }
.swatch { width: 28px; height: 12px; flex: none; margin-right: .45em; overflow: visible; vertical-align: -.05em; }
.panels { display: grid; gap: 2rem 2.2rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); }
.of1 .panels { max-width: 32rem; }
.panel { min-width: 0; }
.plot { position: relative; }
.chart, .swatch { background: none; border-radius: 0; }
.chart { display: block; width: 100%; height: auto; overflow: visible; touch-action: pan-y; }
.chart text { font-size: 12.5px; fill: var(--faint); font-variant-numeric: tabular-nums; }
.ty { text-anchor: end; } .tx, .name { text-anchor: middle; } .name.up { text-anchor: start; }
.grid { stroke: var(--line); stroke-width: 1; } .axis { stroke: var(--faint); stroke-width: 1; opacity: .7; }
.chart path, .swatch path { fill: none; }
.m { stroke: var(--k); stroke-width: 2; stroke-linejoin: round; stroke-linecap: butt; } .thin { stroke-width: 1.6; }
.chart .b { fill: var(--k); fill-opacity: .12; stroke: none; }
.bar { stroke: var(--k); stroke-width: 1.6; opacity: .75; }
.chart .end, .swatch .end, .chart .seed, .chart .big { fill: var(--k); stroke: var(--paper); stroke-width: 1; }
.chart .seed { opacity: .45; stroke: none; } .chart .big { stroke-width: 1.4; }
.exact { --k: var(--ink); } .chart .exact .m { stroke-width: 2.4; }
.s { transition: opacity .12s; } .s.off { display: none; } .dimmed .s:not(.lit) { opacity: .14; }
.cross { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 2; }
.readout { position: absolute; z-index: 2; top: 8%; pointer-events: none; background: var(--paper); color: var(--ink);
  border: 1px solid var(--line); border-radius: 6px; padding: .4rem .6rem; font-size: .78rem; line-height: 1.45;
  box-shadow: 0 4px 16px rgb(0 0 0 / .13); white-space: nowrap; }
.readout b { display: block; font-weight: 600; margin-bottom: .1rem; }
.readout table { margin: 0; font-size: inherit; } .readout td { padding: 0 .7em 0 0; border: 0; text-align: left; }
.readout td + td { text-align: right; font-variant-numeric: tabular-nums; } .readout td:last-child { padding: 0; }
.readout .swatch { width: 21px; height: 9px; }

.tabular, .ranking { width: fit-content; min-width: min(100%, 38rem); max-width: 100%; } .claims { width: auto; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .92rem; line-height: 1.45; font-variant-numeric: tabular-nums;
  margin: 0; }
th, td { text-align: left; padding: .42rem 1.6rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  font-weight: 400; }
th:last-child, td:last-child { padding-right: 0; }
thead th { font-weight: 600; border-bottom-color: var(--faint); vertical-align: bottom; white-space: nowrap; }
tbody th, td small { white-space: nowrap; } .chapter .number { text-align: right; }
td:not(.number) { min-width: 4rem; } .small { margin-top: .7rem; font-size: .86rem; }
.small th, .small td { padding-block: .2rem; }
thead button { all: unset; cursor: pointer; white-space: nowrap; }
thead button:focus-visible { outline: 2px solid var(--accent); outline-offset: 3px; }
thead button::after { content: "\\2195"; color: var(--faint); font-size: .8em; padding-left: .35em; opacity: .55; }
[aria-sort=ascending] button::after { content: "\\2191"; opacity: 1; }
[aria-sort=descending] button::after { content: "\\2193"; opacity: 1; }
.claims table { width: 100%; } .claims tbody th { white-space: normal; width: 42%; }
.claims td { padding-right: 1.2rem; }
.answer { font-weight: 600; white-space: nowrap; } .answer::before { display: inline-block; width: 1.25em; }
.yes, .finished { color: var(--good); } .yes::before, .finished::before { content: "\\2713"; }
.no, .failed { color: var(--bad); } .no::before, .failed::before { content: "\\2717"; }
.not, .missing { color: var(--open); } .not::before, .missing::before { content: "?"; }

.classes { list-style: none; counter-reset: c; padding: 0; margin: 0 0 1.6rem; }
.classes li { counter-increment: c; display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .8rem;
  padding: .3rem 0; }
.classes li::before { content: counter(c); font-weight: 600; color: var(--faint); width: 1.1rem; }
.class { display: inline-flex; flex-wrap: wrap; gap: .2rem 1.1rem; background: var(--card); padding: .3rem .8rem;
  border-radius: 6px; }
.who { white-space: nowrap; font-size: .95rem; }
.matrix th, .matrix td { padding: .34rem .55rem; text-align: center; border-bottom: 2px solid var(--paper);
  border-right: 2px solid var(--paper); }
.matrix thead th { border-bottom-color: var(--paper); font-weight: 400; font-size: .86rem; }
.matrix tbody th, .matrix thead th:first-child { text-align: left; padding-left: 0; }
.over { background: color-mix(in srgb, var(--k0) var(--p), var(--paper)); }
.under { background: color-mix(in srgb, var(--k1) var(--p), var(--paper)); }
.matrix .none { color: var(--faint); }

.pictures { display: grid; gap: 1.4rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13.5rem), 1fr)); }
.picture img { width: 100%; height: auto; display: block; background: #fff; border-radius: 5px;
  border: 1px solid var(--line);
  cursor: zoom-in; }
.picture figcaption { margin-top: .35rem; }
.absent { border: 1px dashed var(--line); padding: 2rem 1rem; font-size: .88rem; }
dialog { border: 0; padding: 0; border-radius: 6px; max-width: 96vw; } dialog img { display: block; max-width: 100%; }
dialog::backdrop { background: rgb(0 0 0 / .6); }

pre { background: var(--card); padding: .7rem 1rem; border-radius: 6px; margin: 0 0 .9rem; white-space: pre-wrap; }
details { margin: .4rem 0; } .chapter details, .contents details { background: none; padding: 0; }
summary { cursor: pointer; padding: .25rem 0; }
.run .wide { margin: .3rem 0 1rem; } .runs { width: 100%; } .runs tbody th { white-space: normal; min-width: 15rem; }
.runs small { white-space: normal; }
.runs code { display: block; color: var(--faint); font-size: .78rem; }
.runs .why { margin: .1rem 0; color: var(--bad); }
.facts { display: flex; flex-wrap: wrap; gap: 1rem 3.5rem; padding: .5rem 0; font-size: .88rem; }
.facts dl { display: grid; grid-template-columns: auto 1fr; gap: .1rem 1rem; margin: .2rem 0 0; }
.facts dt { color: var(--faint); } .facts dd { margin: 0; overflow-wrap: anywhere; }

.contents { font-size: .86rem; line-height: 1.4; margin-bottom: 2rem; }
.contents ol { list-style: none; margin: 0; padding: 0; } .contents ol ol { padding: .2rem 0 .8rem .8rem; }
.contents a { display: block; padding: .2rem 0; color: var(--faint); text-decoration: none; }
.contents > details > ol > li > a { color: var(--ink); font-weight: 600; } .contents a:hover { color: var(--accent); }
.contents a[aria-current] { color: var(--accent); }
.contents summary { color: var(--faint); }
@media (min-width: 78rem) {
  body { max-width: 80rem; } .book { display: grid; grid-template-columns: 13rem minmax(0, 1fr); gap: 4rem; }
  .contents { position: sticky; top: 2.2rem; align-self: start; max-height: calc(100vh - 4rem); overflow-y: auto; }
}
@media (max-width: 40rem) {
  body { padding: 1.4rem 1rem 4rem; } .chapter > section { margin-top: 2.4rem; }
  .readout { position: static; box-shadow: none; margin-top: .5rem; white-space: normal; }
  th, td { padding-right: 1.1rem; } .csv { margin-left: 0; }
  .claims thead { display: none; }
  .claims tr { display: block; padding: .7rem 0; border-bottom: 1px solid var(--line); }
  .claims tbody th, .claims td { display: block; width: auto; border: 0; padding: .1rem 0; }
  .pictures { grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 1rem; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 11pt; } .contents, .readout, .csv { display: none !important; }
  figure, tr, h3 { break-inside: avoid; } h3, h4 { break-after: avoid; } .wide { overflow: visible; }
  .chapter + .chapter { break-before: page; } thead button::after { content: none; }
  .over, .under, .swatch, .chart { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } .s { transition: none; } }
""".replace("LIGHT", _colours(looks.LIGHT)).replace("DARK", _colours(looks.DARK))
    + "\n".join(f".k{i} {{ --k: var(--k{i}); }}" for i in range(len(looks.LIGHT)))
)

SCRIPT = r"""
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
"""
