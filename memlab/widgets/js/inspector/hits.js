// The list of hits. Rows are kept by memory while the order changes: they move to their new places and keep the focus.

function hitList({ hello, open, detail }) {
  const { palette } = hello;
  const list = h("ol", { class: "in-hits", "aria-label": "Hits" });
  const rows = new Map();

  const row = (id) => {
    const button = h("button", { type: "button", class: "in-hit-row", "aria-expanded": "false", onclick: () => open(id) });
    const inside = h("div", { class: "in-detail", hidden: true, role: "region" });
    const item = h("li", { class: "in-hit", "data-id": id }, button, inside);
    // Up and down go from hit to hit, as in any list.
    button.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const all = [...list.querySelectorAll(".in-hit-row")];
      all[all.indexOf(button) + step]?.focus();
    });
    return { item, button, inside };
  };

  const draw = (side) => {
    const before = new Map([...rows].map(([id, { item }]) => [id, item.getBoundingClientRect().top]));
    const focused = list.getRootNode().activeElement;
    const wanted = new Set(side.hits.map((hit) => hit.id));
    for (const id of rows.keys()) if (!wanted.has(id)) rows.delete(id);
    const items = side.hits.map((hit) => {
      const entry = rows.get(hit.id) ?? row(hit.id);
      rows.set(hit.id, entry);
      fill(
        entry.button,
        h("span", { class: "in-rank" }, hit.rank),
        h("span", { class: "in-text" }, textOf(hit.excerpt)),
        h("span", { class: "in-facts" }, h("code", {}, hit.shown_id), hit.facts.map((fact) => ` · ${fact}`)),
        h("span", { class: "in-figures" }, bar(hit, palette, side.top), columns(hit, palette), h("span", { class: "in-score" }, figure(hit.score))),
      );
      return entry.item;
    });
    list.replaceChildren(...items);
    if (focused && list.contains(focused)) focused.focus({ preventScroll: true });
    slide(items, before);
  };

  /** Open one row with this content, or none. */
  const show = (id, content) => {
    for (const [other, { button, inside, item }] of rows) {
      const here = other === id;
      button.setAttribute("aria-expanded", String(here));
      item.toggleAttribute("data-open", here);
      inside.hidden = !here;
      if (!here) fill(inside);
      else if (content) replaceKeeping(inside, content);
      inside.setAttribute("aria-label", `All about ${other}`);
    }
    return rows.has(id);
  };

  return { node: h("div", {}, legend(palette), list), draw, show, has: (id) => rows.has(id), row: (id) => rows.get(id)?.button };
}

/** From where they were to where they are. */
function slide(items, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const item of items) {
    const from = before.get(item.dataset.id);
    const by = from === undefined ? 0 : from - item.getBoundingClientRect().top;
    if (from === undefined && before.size) item.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 220 });
    else if (Math.abs(by) > 1 && Math.abs(by) < 3000) {
      item.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 240, easing: "ease-out" });
    }
  }
}

/** Replace children; what is unfolded stays so, and what has the focus gets it back. */
function replaceKeeping(node, children) {
  const unfolded = new Set([...node.querySelectorAll("details[open][data-keep]")].map((each) => each.dataset.keep));
  const focused = node.getRootNode().activeElement;
  const within = focused && node.contains(focused) ? focusKey(node, focused) : null;
  const scrolled = new Map([...node.querySelectorAll(".in-values")].map((each, at) => [at, each.scrollTop]));
  fill(node, children);
  for (const each of node.querySelectorAll("details[data-keep]")) if (unfolded.has(each.dataset.keep)) each.open = true;
  for (const [at, top] of scrolled) {
    const list = node.querySelectorAll(".in-values")[at];
    if (list) list.scrollTop = top;
  }
  if (within) focusable(node).find((each) => focusKey(node, each) === within)?.focus({ preventScroll: true });
}

const focusable = (node) => [...node.querySelectorAll("button, input, select, summary, [tabindex='0']")];

/** What tells a control from its neighbours after a redraw: its key or its name, and which of several so named. */
function focusKey(node, control) {
  const name = (each) => each.dataset.key ?? each.getAttribute("aria-label") ?? each.textContent;
  const same = focusable(node).filter((each) => each.tagName === control.tagName && name(each) === name(control));
  return `${control.tagName} ${name(control)} ${same.indexOf(control)}`;
}
