// What the scripts of all widgets share. It is put before a widget's own script, which ends with
//   export default { render: (context) => mount(context, { title, build }) };
// Stored text reaches the page as text nodes and attribute values only, never as markup.

/** A new element. Attributes that are false or null are left out, `on...` are listeners, children may be text. */
function h(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name.slice(2).toLowerCase(), value);
    else if (name === "style") for (const [key, entry] of Object.entries(value)) node.style.setProperty(key, entry);
    else if (name === "value" && "value" in node) continue; // below: a select takes it once it has its options
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  fill(node, ...children);
  if (attributes.value !== undefined && "value" in node) node.value = attributes.value;
  return node;
}

/** Call `act` for Enter in a field. Not by a form element: notebooks keep Enter from submitting one. */
function onEnter(field, act) {
  field.addEventListener("keydown", (event) => {
    // While a word is composed, as in Japanese, Enter chooses it.
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    act();
  });
  return field;
}

/** Replace the children of a node. */
function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** `act`, once nobody has called for `wait` milliseconds. `.now()` does what waits at once, `.cancel()` drops it. */
function debounced(act, wait) {
  let timer = null;
  let waiting = null;
  const run = () => {
    clearTimeout(timer);
    const given = waiting;
    timer = waiting = null;
    if (given) act(...given);
  };
  const call = (...given) => {
    waiting = given;
    clearTimeout(timer);
    timer = setTimeout(run, wait);
  };
  call.now = run;
  call.cancel = () => {
    clearTimeout(timer);
    timer = waiting = null;
  };
  return call;
}

const PATIENCE = 8000; // ms

/**
 * Questions to Python and its answers. Every question has a number; an answer finds its question by it.
 * `ask` gives every question an answer. `latest` is for what a person changes faster than it is answered: one question
 * of a kind is under way, of those that come meanwhile only the last is asked, and answers to what has been
 * superseded are dropped (their promise stays open). `slow` is called when an answer is long in coming.
 */
function connect(model, slow = () => {}) {
  const own = Math.random().toString(36).slice(2); // two views of one model do not take each other's answers
  const open = new Map();
  const listeners = new Map();
  const lanes = new Map();
  let seq = 0;

  const receive = (message, buffers) => {
    if (message.push !== undefined) {
      for (const listener of listeners.get(message.push) ?? []) listener(message.body, buffers);
      return;
    }
    if (message.to !== own || !open.has(message.seq)) return;
    const { resolve, reject, timer } = open.get(message.seq);
    clearTimeout(timer);
    open.delete(message.seq);
    if (message.error) reject(Object.assign(new Error(message.error.message), { name: message.error.type }));
    else resolve(buffers && buffers.length ? { body: message.body, buffers } : { body: message.body, buffers: [] });
  };
  model.on("msg:custom", receive);

  const ask = (kind, body = {}) =>
    new Promise((resolve, reject) => {
      seq += 1;
      open.set(seq, { resolve, reject, timer: setTimeout(slow, PATIENCE) });
      model.send({ ask: kind, body, from: own, seq });
    });

  const latest = (kind, body = {}, lane = kind) =>
    new Promise((resolve, reject) => {
      const state = lanes.get(lane) ?? { busy: false, next: null };
      lanes.set(lane, state);
      const wanted = { kind, body, resolve, reject };
      state.next = wanted;
      const go = async () => {
        while (state.next) {
          const one = state.next;
          state.next = null;
          state.busy = true;
          try {
            const answer = await ask(one.kind, one.body);
            if (!state.next) one.resolve(answer);
          } catch (error) {
            if (!state.next) one.reject(error);
          }
        }
        state.busy = false;
      };
      if (!state.busy) go();
    });

  return {
    ask,
    latest,
    on(kind, listener) {
      listeners.set(kind, [...(listeners.get(kind) ?? []), listener]);
    },
    waiting: () => open.size > 0,
    close() {
      model.off("msg:custom", receive);
      for (const { timer } of open.values()) clearTimeout(timer);
      open.clear();
    },
  };
}

/** Whether the surroundings are dark, from the colour that is really behind the widget's text. */
function isDark(root) {
  const channels = getComputedStyle(root).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [255, 255, 255];
  const [red, green, blue] = channels;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

/** Keep `data-theme` of the root right; `changed(dark)` is called at the start and whenever the theme changes. */
function followTheme(root, changed = () => {}) {
  let known = null;
  const look = () => {
    const dark = isDark(root);
    if (dark === known) return;
    known = dark;
    root.dataset.theme = dark ? "dark" : "light";
    changed(dark);
  };
  // A front end changes attributes or style sheets first and the colours follow a moment later.
  const soon = debounced(look, 60);
  const observer = new MutationObserver(() => soon());
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true });
  observer.observe(document.head, { childList: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", soon);
  look();
  soon();
  return () => {
    observer.disconnect();
    soon.cancel();
    system.removeEventListener("change", soon);
  };
}

/** Hide the static picture that was put out before this view; returns what shows it again. */
function hidePicture(el, kind) {
  const wanted = kind === "image" ? 'img[src^="data:image/png"], img[src^="blob:"]' : ".memlab-picture";
  const find = () => {
    // Front ends nest outputs differently: climb until the output before this one is a neighbour.
    for (let node = el, up = 0; node && up < 9; node = node.parentElement, up += 1) {
      const before = node.previousElementSibling;
      if (before && (before.matches(wanted) || before.querySelector(wanted))) return before;
    }
    return null;
  };
  let hidden = null;
  const hide = () => {
    const found = find();
    if (!found || found === hidden) return;
    hidden = found;
    found.style.setProperty("display", "none");
  };
  hide();
  // A picture that is drawn again may come in a new element.
  const observer = new MutationObserver(hide);
  if (hidden?.parentElement) observer.observe(hidden.parentElement, { childList: true });
  return () => {
    observer.disconnect();
    hidden?.style.removeProperty("display");
  };
}

/**
 * Render a view. `build(view)` is called with the answer to `hello` and may return what to do when the view goes.
 *   view.root      the element to build in, themed
 *   view.hello     what Python said to begin with
 *   view.link      ask, latest and on, see connect()
 *   view.say(text) for screen readers, politely
 *   view.fail(error), view.clear()   show an error above the widget, take it away
 *   view.settled   call after every change: the picture follows when the person pauses
 *   view.onTheme(f)  f(dark), now and whenever it changes
 */
function mount({ model, el }, { title, build }) {
  const link = connect(model, () => frame.isConnected && view.fail("The kernel has not answered yet: it is busy with a cell, or it was restarted; then run the cell again."));
  const trouble = h("div", { class: "ml-trouble", role: "alert" });
  const voice = h("div", { class: "ml-unseen", "aria-live": "polite", role: "status" });
  const root = h("div", { class: "ml-root" });
  const frame = h("section", { class: "ml", "aria-label": title }, trouble, root, voice);
  // Keys pressed in here are for the widget: in a notebook's command mode "x" would cut the cell, and the arrows would
  // leave it. JupyterLab looks for this on the focused element first, so it is set there and not on the frame alone.
  const own = "data-lm-suppress-shortcuts";
  frame.setAttribute(own, "true");
  frame.addEventListener("focusin", (event) => event.target.setAttribute(own, "true"));
  const themed = [];
  const endings = [];
  let alive = true;

  const view = {
    root,
    link,
    say(text) {
      voice.textContent = text;
    },
    fail(error) {
      fill(trouble, error?.message === undefined ? String(error) : [h("strong", {}, "This did not work. "), error.message]);
      trouble.dataset.shown = "true";
    },
    clear() {
      if (!trouble.dataset.shown) return;
      delete trouble.dataset.shown;
      fill(trouble);
    },
    settled: debounced(() => link.ask("settled").catch(view_fail), 900),
    onTheme(changed) {
      themed.push(changed);
      changed(frame.dataset.theme === "dark");
    },
    onEnd(act) {
      endings.push(act);
    },
  };
  function view_fail(error) {
    view.fail(error);
  }

  link
    .ask("hello")
    .then(({ body, buffers }) => {
      if (!alive) return;
      el.replaceChildren(frame);
      endings.push(hidePicture(el, model.get("_kind")));
      endings.push(keepFocus(frame));
      endings.push(followTheme(frame, (dark) => themed.forEach((changed) => changed(dark))));
      view.hello = body;
      view.buffers = buffers;
      const ended = build(view);
      if (ended) endings.push(ended);
      frame.dataset.ready = "true";
    })
    .catch((error) => {
      if (!alive) return;
      if (!frame.isConnected) el.replaceChildren(frame);
      followTheme(frame);
      view.fail(error);
    });

  return () => {
    alive = false;
    view.settled.cancel();
    link.close();
    for (const end of endings) end();
  };
}
