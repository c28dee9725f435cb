// What stands beside the map: the legend, and lists in which a click flies to the memory.

/** The legend of a column: each entry hides and shows its memories. */
function legendOf({ changed }) {
  const list = h("ul", { class: "mm-legend", "aria-label": "Legend: press an entry to hide or show its memories" });
  const draw = (column, hidden, dark) => {
    const only = (code) => {
      const alone = column.values.every((_, other) => hidden[other] === (other === code ? 0 : 1));
      column.values.forEach((_, other) => { hidden[other] = alone || other === code ? 0 : 1; });
      changed();
    };
    const entries = column.values.map((value, code) =>
      h("li", {},
        h("button", {
          type: "button", "aria-pressed": String(!hidden[code]), class: "mm-entry",
          title: "Press to hide or show; with Shift, show this one alone",
          onclick: (event) => {
            if (event.shiftKey) return only(code);
            hidden[code] = hidden[code] ? 0 : 1;
            return changed();
          },
        }, swatch(lookOf(column, code, dark)), h("span", { class: "mm-value" }, value), h("span", { class: "ml-number ml-quiet" }, column.counts[code].toLocaleString("en"))),
      ));
    const focused = [...list.querySelectorAll("button")].indexOf(list.getRootNode().activeElement);
    fill(list, entries);
    if (focused >= 0) list.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
  };
  return { node: list, draw };
}

/** Tabs, of which one is open; `shown(name)` is called when it opens. */
function tabs(names, shown) {
  const panels = new Map(), buttons = new Map();
  const id = Math.random().toString(36).slice(2);
  const bar = h("div", { class: "mm-tabs", role: "tablist", "aria-label": "Lists" });
  let open = null;
  const choose = (name, focus = false) => {
    open = name;
    for (const [other, button] of buttons) {
      const here = other === name;
      button.setAttribute("aria-selected", String(here));
      button.tabIndex = here ? 0 : -1;
      panels.get(other).hidden = !here;
      if (here && focus) button.focus();
    }
    shown(name);
  };
  Object.entries(names).forEach(([name, title]) => {
    const button = h("button", { type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": `${id}-${name}-panel`, onclick: () => choose(name) }, title);
    button.addEventListener("keydown", (event) => {
      const all = [...buttons.keys()], step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      choose(all[(all.indexOf(name) + step + all.length) % all.length], true);
    });
    buttons.set(name, button);
    panels.set(name, h("div", { class: "mm-panel", role: "tabpanel", id: `${id}-${name}-panel`, "aria-labelledby": `${id}-${name}`, hidden: true }));
  });
  fill(bar, [...buttons.values()]);
  return {
    node: h("div", { class: "mm-lists" }, bar, [...panels.values()]),
    panel: (name) => panels.get(name),
    rename: (name, title) => { buttons.get(name).textContent = title; },
    choose,
    get open() { return open; },
  };
}

/** One memory in a list. */
function memoryRow({ label, id, text, facts }, onclick, extra = null) {
  return h("li", { class: "mm-row" },
    h("button", { type: "button", class: "mm-go", onclick, title: "Show on the map" },
      label ? h("span", { class: "mm-label" }, label) : null,
      h("span", { class: "mm-text" }, text),
      h("span", { class: "mm-facts" }, h("code", {}, id), facts ? ` · ${facts}` : "")),
    extra);
}
