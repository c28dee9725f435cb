// The map: all memories as points on a canvas that can be moved, zoomed, searched and encircled.

const MOVING_FOR = 160; // milliseconds after the last movement in which a part of the points stands for all
const FRAME_BUDGET = 14; // milliseconds that the points may take of a frame while the map moves
const MANY = 20_000; // memories from which comparing all of them is not done unasked
const HELP = "Arrow keys move the map, plus and minus zoom, 0 shows all. N and P go from memory to memory, Enter selects, Shift Enter adds. L encircles what is in sight, Escape clears.";

function build(view) {
  const { hello, link, root } = view;
  const count = hello.count;
  const points = new Float32Array(copyOf(view.buffers[0]));
  const codesOf = new Map();
  const columns = new Map();
  const coded = new Uint8Array(copyOf(view.buffers[1]));
  hello.columns.forEach((column, at) => {
    columns.set(column.name, column);
    codesOf.set(column.name, coded.slice(at * count, (at + 1) * count));
  });
  const grid = makeGrid(points, count);
  const state = {
    column: columns.get(hello.colour), codes: codesOf.get(hello.colour), hidden: new Uint8Array(256),
    found: null, foundCount: 0, chosen: bitsOf(view.buffers[2], count), chosenCount: hello.selection.count,
    landing: hello.landing, list: "hits", passages: null, hover: -1, lasso: null, dark: false, mode: "move",
  };
  const frame = { x: 0, y: 0, scale: 1 };
  const visible = (i) => !state.hidden[state.codes[i]];
  let width = 0, height = 0, ratio = 1, full = 0, rate = 20_000, movedAt = 0, asked = false, idle = null, drawn = 0;

  // -- the page ------------------------------------------------------------------------------------------------------

  const layer = pointLayer(points, count), above = overlayLayer();
  const card = h("div", { class: "mm-card", hidden: true });
  const helpId = `mm-help-${Math.random().toString(36).slice(2)}`;
  const stage = h("div", {
    class: "mm-stage", tabindex: "0", role: "application", "aria-roledescription": "map", "aria-describedby": helpId,
    "aria-label": `Map of ${count.toLocaleString("en")} memories`,
  }, layer.canvas, above.canvas, card, count ? null : h("p", { class: "mm-empty" }, "No memory has a vector yet."));
  const find = h("input", { type: "search", class: "mm-find", placeholder: "Find text", "aria-label": "Find memories with this text" });
  const findSaid = h("span", { class: "mm-said ml-quiet", role: "status" });
  const colourSaid = h("span", { class: "ml-quiet mm-wait", role: "status" });
  const colour = h("select", { "aria-label": "Colour and shape by", onchange: () => recolour(colour.value) },
    hello.colours.map((name) => h("option", { value: name }, name)));
  colour.value = hello.colour;
  const modes = ["move", "encircle"].map((mode) =>
    h("button", { type: "button", "data-mode": mode, "aria-pressed": String(mode === state.mode), title: mode === "move" ? "Drag to move the map" : "Drag around memories to select them (Shift and drag does it too)", onclick: () => setMode(mode) }, mode === "move" ? "Move" : "Encircle"));
  const tools = h("div", { class: "mm-tools", role: "toolbar", "aria-label": "Map" },
    h("span", { class: "mm-pair" }, modes),
    h("span", { class: "mm-pair" },
      h("button", { type: "button", "aria-label": "Zoom in", title: "Zoom in (+)", onclick: () => zoom(1.5) }, "+"),
      h("button", { type: "button", "aria-label": "Zoom out", title: "Zoom out (-)", onclick: () => zoom(1 / 1.5) }, "−"),
      h("button", { type: "button", title: "Show all (0)", onclick: () => fit() }, "All")));
  const legend = legendOf({ changed: () => { legend.draw(state.column, state.hidden, state.dark); changed(); } });
  const lists = tabs({ query: "Query", selected: "Selected", alike: "Alike", alone: "Alone" }, opened);
  const faith = h("p", { class: "mm-faith" }, h("strong", {}, "Near means related; far means little. "),
    hello.method === "umap"
      ? "UMAP keeps neighbours together. How far apart groups lie, how large they are and which way is up mean nothing. "
      : "PCA shows the two directions in which memories differ most; what differs in others lies on top of one another. ");
  const faithSaid = h("span", {});
  faith.append(faithSaid);
  const top = h("div", { class: "mm-top" }, h("label", { class: "mm-by" }, "Colour by", colour), colourSaid, find, findSaid, h("span", { class: "mm-gap" }), tools);
  fill(root, h("div", { class: "mm" }, top,
    h("div", { class: "mm-body" }, stage, h("div", { class: "mm-side" }, legend.node, lists.node)),
    h("div", { class: "mm-foot" }, faith, hello.note ? h("p", { class: "mm-note" }, hello.note) : null,
      hello.placed ? h("p", { class: "ml-quiet" }, `${hello.placed.toLocaleString("en")} placed beside their neighbours after the picture was made.`) : null),
    h("p", { class: "ml-unseen", id: helpId }, HELP)));

  // -- drawing -------------------------------------------------------------------------------------------------------

  const place = (x, y) => [width / 2 + (x - frame.x) * frame.scale, height / 2 - (y - frame.y) * frame.scale];
  const back = (px, py) => [frame.x + (px - width / 2) / frame.scale, frame.y - (py - height / 2) / frame.scale];
  const radius = () => {
    const base = count <= 300 ? 5.5 : count <= 1500 ? 4.6 : count <= 6000 ? 3.6 : count <= 20000 ? 2.8 : 1.7;
    return Math.min(9, base * Math.max(1, (frame.scale / full) ** 0.35));
  };

  function schedule() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(paint);
  }
  function paint() {
    asked = false;
    if (!width) return;
    const started = performance.now();
    const moving = started - movedAt < MOVING_FOR;
    const part = moving ? Math.max(4_000, Math.floor(rate * FRAME_BUDGET)) : Infinity;
    drawn = layer.draw({ x: frame.x, y: frame.y, scale: frame.scale * ratio }, { ...state, radius: radius() * ratio }, part);
    const points_ms = performance.now() - started;
    // Points a millisecond, as measured; the next frame of a movement draws so many as the budget allows.
    if (drawn > 1000 && points_ms > 0.5) rate = 0.7 * rate + 0.3 * (drawn / points_ms);
    paintAbove();
    view.frameTimes?.push({ points: points_ms, all: performance.now() - started, drawn, moving });
    if (moving && part < count) {
      clearTimeout(idle);
      idle = setTimeout(schedule, MOVING_FOR + 10);
    }
  }
  function paintAbove() {
    above.draw(ratio, place, { ...state, points, near: radius(), lookOfList });
  }
  const lookOfList = (name, dark) => {
    if (name === "hits") return dark ? "#ffffff" : "#1b1b1b";
    const given = hello.looks[name];
    return dark && given === "#0072b2" ? "#3f9fe0" : given ?? (dark ? "#8fd0f5" : "#0072b2");
  };
  function moved() {
    movedAt = performance.now();
    schedule();
    keepPicture();
  }
  function changed() {
    schedule();
    keepPicture();
  }
  function resize() {
    const box = stage.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const before = width ? wholeMap().scale : 0;
    width = box.width;
    height = box.height;
    ratio = Math.min(2, window.devicePixelRatio || 1);
    for (const canvas of [layer.canvas, above.canvas]) {
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    layer.resize(Math.round(width * ratio), Math.round(height * ratio));
    above.canvas.width = layer.canvas.width;
    above.canvas.height = layer.canvas.height;
    if (!before) fit();
    else {
      // As much of the map as before, in the room that there is now.
      full = wholeMap().scale;
      frame.scale *= full / before;
      paint();
    }
  }
  /** The frame in which all points are in sight. */
  function wholeMap() {
    const query = state.landing?.place;
    const left = Math.min(grid.left, query?.[0] ?? Infinity), right = Math.max(grid.right, query?.[0] ?? -Infinity);
    const bottom = Math.min(grid.bottom, query?.[1] ?? Infinity), upper = Math.max(grid.top, query?.[1] ?? -Infinity);
    const scale = Math.min((width - 56) / Math.max(right - left, 1e-6), (height - 56) / Math.max(upper - bottom, 1e-6));
    return { x: (left + right) / 2, y: (bottom + upper) / 2, scale };
  }
  function fit() {
    Object.assign(frame, wholeMap());
    full = frame.scale;
    changed();
  }
  function zoom(by, px = width / 2, py = height / 2) {
    const [x, y] = back(px, py);
    frame.scale = Math.max(full / 4, Math.min(full * 400, frame.scale * by));
    frame.x = x - (px - width / 2) / frame.scale;
    frame.y = y + (py - height / 2) / frame.scale;
    moved();
  }
  let flight = 0;
  /** Move so that these points are in sight, and the query with them. */
  function fly(rows, also = []) {
    const xs = [...rows.map((i) => points[2 * i]), ...also.map(([x]) => x)], ys = [...rows.map((i) => points[2 * i + 1]), ...also.map(([, y]) => y)];
    if (!xs.length) return;
    const left = least(xs), right = most(xs), bottom = least(ys), upper = most(ys);
    const scale = Math.min(full * 6, (width * 0.5) / Math.max(right - left, 1e-9), (height * 0.5) / Math.max(upper - bottom, 1e-9));
    const from = { ...frame }, to = { x: (left + right) / 2, y: (bottom + upper) / 2, scale: Math.max(scale, full) };
    const started = performance.now(), own = (flight += 1);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const step = () => {
      if (own !== flight) return;
      const along = still ? 1 : Math.min(1, (performance.now() - started) / 350), ease = along * (2 - along);
      frame.x = from.x + (to.x - from.x) * ease;
      frame.y = from.y + (to.y - from.y) * ease;
      frame.scale = from.scale * (to.scale / from.scale) ** ease;
      moved();
      if (along < 1) requestAnimationFrame(step);
    };
    step();
  }

  const flyTo = (hits) => fly(hits.map((hit) => hit.row), state.landing.place ? [state.landing.place] : []);

  // -- the text of a memory --------------------------------------------------------------------------------------------

  const texts = new Map();
  async function textOf(row) {
    if (!texts.has(row)) {
      const { body } = await link.latest("text", { row });
      if (texts.size > 500) texts.clear();
      texts.set(row, body);
    }
    return texts.get(row);
  }
  function hover(row, speak = false) {
    if (row === state.hover) return;
    state.hover = row;
    paintAbove();
    if (row < 0) {
      card.hidden = true;
      return;
    }
    textOf(row).then((told) => {
      if (state.hover !== row || !told) return;
      fill(card, h("p", { class: "mm-card-text" }, told.text), h("p", { class: "mm-facts" }, h("code", {}, told.id), ` · ${told.facts}`));
      card.hidden = false;
      setCard();
      if (speak) view.say(`${told.id}. ${told.text}`);
    }).catch(view.fail);
  }
  function setCard() {
    if (card.hidden || state.hover < 0) return;
    const [x, y] = place(points[2 * state.hover], points[2 * state.hover + 1]);
    const w = card.offsetWidth, tall = card.offsetHeight;
    card.style.left = `${Math.max(6, Math.min(width - w - 6, x + (x > width * 0.6 ? -w - 16 : 16)))}px`;
    card.style.top = `${Math.max(6, Math.min(height - tall - 6, y + (y > height * 0.6 ? -tall - 12 : 12)))}px`;
  }

  // -- choosing --------------------------------------------------------------------------------------------------------

  function choose(rows, add = false) {
    if (!add) state.chosen.fill(0);
    for (const row of rows) state.chosen[row] = 1;
    tell();
  }
  function tell() {
    let chosen = 0;
    for (let i = 0; i < count; i += 1) chosen += state.chosen[i];
    state.chosenCount = chosen;
    state.passages = null;
    changed();
    // The newest choice is what counts, however quick somebody clicks.
    link.latest("select", { mask: packed(state.chosen) }).then(({ body }) => drawSelected(body)).catch(view.fail);
  }
  function drawSelected(selection) {
    lists.rename("selected", selection.count ? `Selected ${selection.count.toLocaleString("en")}` : "Selected");
    const panel = lists.panel("selected");
    if (!selection.count) {
      fill(panel, h("p", { class: "mm-hint" }, "Click a memory, or hold Shift and drag around several. In Python: ", h("code", {}, ".selected")));
      return;
    }
    fill(panel,
      h("div", { class: "mm-actions" },
        h("button", { type: "button", onclick: () => fly(rowsChosen()) }, "Show"),
        h("button", { type: "button", onclick: () => choose([]) }, "Clear")),
      h("ul", {}, selection.rows.map((one) => memoryRow(one, () => { fly([one.row]); hover(one.row); },
        h("button", { type: "button", class: "mm-small", onclick: () => showPassages(one.row), title: "Where the passages of this memory lie" }, "Passages")))),
      selection.count > selection.rows.length ? h("p", { class: "mm-hint" }, `and ${(selection.count - selection.rows.length).toLocaleString("en")} more`) : null);
    view.say(`${selection.count} selected`);
  }
  const rowsChosen = () => {
    const rows = [];
    for (let i = 0; i < count; i += 1) if (state.chosen[i]) rows.push(i);
    return rows.length ? rows : [0];
  };
  async function showPassages(row) {
    try {
      const { body } = await link.latest("passages", { row });
      state.passages = body.passages.length > 1 ? body : null;
      changed();
      view.say(body.passages.length > 1 ? `${body.passages.length} passages are shown` : "This memory fits the encoder: it is its own passage.");
      const hint = h("p", { class: "mm-hint" }, body.passages.length > 1
        ? h("ol", { class: "mm-passages" }, body.passages.map((one) => h("li", {}, one.text)))
        : "This memory fits the encoder: it is its own passage.");
      lists.panel("selected").querySelector(".mm-told")?.remove();
      hint.classList.add("mm-told");
      lists.panel("selected").querySelector(".mm-actions").after(hint);
    } catch (error) {
      view.fail(error);
    }
  }

  // -- lists -------------------------------------------------------------------------------------------------------------

  const ask = h("input", { type: "search", class: "mm-ask", placeholder: "Ask something", "aria-label": "Query" });
  onEnter(ask, () => query(ask.value));
  const form = h("div", { class: "mm-form", role: "search" }, ask, h("button", { type: "button", class: "ml-primary", onclick: () => query(ask.value) }, "Recall"));
  async function query(text) {
    lists.panel("query").setAttribute("aria-busy", "true");
    try {
      const { body } = await link.latest("query", { text });
      view.clear();
      state.list = "hits";
      land(body);
    } catch (error) {
      view.fail(error);
    } finally {
      lists.panel("query").removeAttribute("aria-busy");
    }
  }
  function land(landing) {
    state.landing = landing;
    if (landing && !landing.lists[state.list]) state.list = "hits";
    drawQuery();
    const rows = (landing?.lists.hits ?? []).map((hit) => hit.row);
    if (landing) view.say(`${rows.length} hits for ${landing.query}`);
    changed();
  }
  function drawQuery() {
    const { landing } = state;
    const panel = lists.panel("query");
    if (landing && form.getRootNode().activeElement !== ask) ask.value = landing.query;
    const shown = landing?.lists[state.list] ?? [];
    fill(panel, hello.asks ? form : null,
      landing ? [
        hello.asks ? null : h("p", { class: "mm-asked" }, landing.query),
        landing.note ? h("p", { class: "mm-note" }, landing.note) : null,
        h("div", { class: "mm-pair mm-channels", role: "group", "aria-label": "Which list" },
          ["hits", ...Object.keys(landing.lists).filter((name) => name !== "hits")].map((name) =>
            h("button", { type: "button", "aria-pressed": String(name === state.list), onclick: () => { state.list = name; drawQuery(); changed(); } },
              svg("svg", { class: "mm-dash", viewBox: "0 0 22 6", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 22, y1: 3, y2: 3, stroke: name === state.list ? "currentColor" : lookOfList(name, state.dark), "stroke-width": 2.5, "stroke-dasharray": (DASHES[name] ?? [4, 2]).join(" ") || null })),
              name)),
          h("button", { type: "button", title: "Show the query and these memories", onclick: () => flyTo(shown) }, "Show")),
        h("ul", {}, shown.map((hit) => memoryRow({ ...hit, label: String(hit.rank) }, () => { fly([hit.row]); hover(hit.row); }))),
        shown.length ? null : h("p", { class: "mm-hint" }, "Nothing in this list."),
      ] : h("p", { class: "mm-hint" }, hello.asks ? "Ask something, and see where the question lands and which memories come back." : "Give a recall: memlab.map(store, recall)."));
  }
  const fetched = new Set();
  function opened(name) {
    const [kind, show] = { alike: ["duplicates", drawAlike], alone: ["outliers", drawAlone] }[name] ?? [];
    if (!kind || fetched.has(name)) return;
    if (count <= MANY) {
      fetchList(name, kind, show);
      return;
    }
    // Every memory is compared with every other, and the kernel does nothing else meanwhile: not by a stray click.
    const minutes = Math.max(1, Math.round(4 * (count / 100_000) ** 2));
    fill(lists.panel(name),
      h("p", { class: "mm-hint" }, `Comparing ${count.toLocaleString("en")} memories with one another takes about ${minutes} minute${minutes === 1 ? "" : "s"}.`),
      h("div", { class: "mm-actions" }, h("button", { type: "button", onclick: () => fetchList(name, kind, show) }, "Compare them")));
  }
  async function fetchList(name, kind, show) {
    fetched.add(name);
    fill(lists.panel(name), h("p", { class: "mm-hint" }, "Comparing memories…"));
    try {
      show((await link.ask(kind)).body);
    } catch (error) {
      fetched.delete(name);
      view.fail(error);
    }
  }
  function drawAlike({ rows, found }) {
    fill(lists.panel("alike"),
      h("p", { class: "mm-hint" }, rows.length
        ? `${found.toLocaleString("en")} pair${found === 1 ? "" : "s"} that say nearly the same, by cosine in the full space.`
        : "No two memories say nearly the same."),
      h("ul", {}, rows.map((pair) => h("li", { class: "mm-row" },
        h("button", { type: "button", class: "mm-go", title: "Show on the map", onclick: () => both(pair.rows.filter((row) => row !== null)) },
          h("span", { class: "mm-label" }, pair.cosine === null ? "=" : pair.cosine.toFixed(2)),
          h("span", { class: "mm-text" }, pair.texts[0]),
          pair.same ? h("span", { class: "mm-same" }, "the very same text") : h("span", { class: "mm-text mm-second" }, pair.texts[1]),
          h("span", { class: "mm-facts" }, h("code", {}, pair.ids[0]), " and ", h("code", {}, pair.ids[1])))))));
  }
  function drawAlone({ rows }) {
    fill(lists.panel("alone"),
      h("p", { class: "mm-hint" }, rows.length ? "Least like any other: mean cosine with the ten nearest, in the full space." : "There is nothing to compare."),
      h("ul", {}, rows.map((one) => memoryRow({ ...one, label: one.mean.toFixed(2), facts: `nearest ${one.nearest}` }, () => both(one.row === null ? [] : [one.row])))));
  }
  function both(rows) {
    if (!rows.length) return;
    choose(rows);
    fly(rows);
    hover(rows[0]);
  }

  // -- colours and search --------------------------------------------------------------------------------------------------

  let wanted = hello.colour; // the newest wish: groups take seconds to be found
  async function recolour(name) {
    wanted = name;
    const known = columns.has(name);
    if (known) showColumn(name);
    colourSaid.textContent = known ? "" : "finding groups…";
    try {
      const { body, buffers } = await link.ask("column", { name });
      keepColumn(body, buffers[0]);
      if (wanted === name && !known) showColumn(name);
    } catch (error) {
      if (wanted === name) colour.value = wanted = state.column.name;
      view.fail(error);
    } finally {
      if (wanted === name) colourSaid.textContent = "";
    }
  }
  function keepColumn(column, buffer) {
    columns.set(column.name, column);
    codesOf.set(column.name, new Uint8Array(copyOf(buffer)));
  }
  function showColumn(name) {
    const column = columns.get(name);
    state.column = column;
    state.codes = codesOf.get(name);
    state.hidden = new Uint8Array(256);
    colour.value = column.name;
    legend.draw(column, state.hidden, state.dark);
    changed();
  }
  const search = debounced(async () => {
    const text = find.value.trim();
    if (!text) {
      state.found = null;
      findSaid.textContent = "";
      changed();
      return;
    }
    try {
      const { body, buffers } = await link.latest("find", { text });
      if (find.value.trim() !== body.text) return;
      state.found = bitsOf(buffers[0], count);
      findSaid.textContent = `${body.count.toLocaleString("en")} found`;
      changed();
    } catch (error) {
      view.fail(error);
    }
  }, 180);
  find.addEventListener("input", search);

  // -- pointer and keys ------------------------------------------------------------------------------------------------------

  function setMode(mode) {
    state.mode = mode;
    stage.dataset.mode = mode;
    for (const button of modes) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
  }
  const spot = (event) => {
    const box = stage.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const under = (px, py) => {
    const [x, y] = back(px, py);
    return grid.nearest(x, y, (radius() + 6) / frame.scale, visible);
  };
  let drag = null;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest(".mm-card")) return;
    const [px, py] = spot(event);
    flight += 1;
    drag = { px, py, x: frame.x, y: frame.y, lasso: event.shiftKey || state.mode === "encircle", far: false };
    if (drag.lasso) state.lasso = [px, py];
    stage.setPointerCapture(event.pointerId);
    stage.focus({ preventScroll: true });
    event.preventDefault();
  });
  stage.addEventListener("pointermove", (event) => {
    const [px, py] = spot(event);
    if (!drag) {
      hover(under(px, py));
      return;
    }
    drag.far = drag.far || Math.hypot(px - drag.px, py - drag.py) > 4;
    if (!drag.far) return;
    hover(-1);
    if (drag.lasso) {
      const last = state.lasso.length;
      if (Math.hypot(px - state.lasso[last - 2], py - state.lasso[last - 1]) > 3) state.lasso.push(px, py);
      paintAbove();
    } else {
      frame.x = drag.x - (px - drag.px) / frame.scale;
      frame.y = drag.y + (py - drag.py) / frame.scale;
      stage.dataset.dragging = "true";
      moved();
    }
  });
  const end = (event) => {
    if (!drag) return;
    const done = drag;
    drag = null;
    delete stage.dataset.dragging;
    const path = state.lasso;
    state.lasso = null;
    if (event.type === "pointercancel") return paintAbove();
    const add = event.ctrlKey || event.metaKey;
    if (!done.far) {
      const row = under(done.px, done.py);
      if (row >= 0) choose([row], add || event.shiftKey);
      else if (state.chosenCount && !add) choose([]);
      if (row >= 0) lists.choose("selected");
    } else if (done.lasso && path.length > 4) {
      const polygon = [];
      for (let i = 0; i < path.length; i += 2) polygon.push(...back(path[i], path[i + 1]));
      choose(grid.inPolygon(polygon, visible), add);
      lists.choose("selected");
    }
    return paintAbove();
  };
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", end);
  stage.addEventListener("pointerleave", () => { if (!drag) hover(-1); });
  stage.addEventListener("wheel", (event) => {
    if (event.target.closest(".mm-card")) return;
    event.preventDefault();
    flight += 1;
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * 0.0022), ...spot(event));
    setCard();
  }, { passive: false });
  stage.addEventListener("dblclick", (event) => zoom(2, ...spot(event)));
  stage.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const shift = 60 / frame.scale;
    const keys = {
      ArrowLeft: () => { frame.x -= shift; moved(); }, ArrowRight: () => { frame.x += shift; moved(); },
      ArrowUp: () => { frame.y += shift; moved(); }, ArrowDown: () => { frame.y -= shift; moved(); },
      "+": () => zoom(1.3), "=": () => zoom(1.3), "-": () => zoom(1 / 1.3), 0: fit,
      n: () => step(1), p: () => step(-1),
      Enter: () => { if (state.hover >= 0) { choose([state.hover], event.shiftKey); lists.choose("selected"); } },
      l: encircleSight,
      Escape: () => { hover(-1); state.passages = null; if (state.chosenCount) choose([]); else changed(); },
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
    setCard();
  });
  /** To the next or the former memory in sight, from left to right. */
  function step(by) {
    const rows = inSight().sort((a, b) => points[2 * a] - points[2 * b] || a - b);
    if (!rows.length) return;
    const at = rows.indexOf(state.hover);
    hover(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : (at + by + rows.length) % rows.length], true);
  }
  function inSight() {
    const [x0, y1] = back(0, 0), [x1, y0] = back(width, height), rows = [];
    grid.inBox(x0, y0, x1, y1, (i) => {
      const x = points[2 * i], y = points[2 * i + 1];
      if (x >= x0 && x <= x1 && y >= y0 && y <= y1 && visible(i) && (!state.found || state.found[i])) rows.push(i);
    });
    return rows;
  }
  function encircleSight() {
    choose(inSight());
    lists.choose("selected");
  }

  // -- the picture that a saved notebook keeps ---------------------------------------------------------------------------

  let kept = "";
  const keepPicture = debounced(() => {
    if (!width || !root.isConnected) return;
    paint();
    const png = pictureOf(layer.canvas, above.canvas, { column: state.column, hidden: state.hidden, dark: state.dark, faith: faithSaid.textContent, query: state.landing?.query, width, height });
    // The same picture need not be sent, nor saved, again.
    if (png === kept) return;
    kept = png;
    link.ask("drawn", { png }).catch(view.fail);
  }, 900);

  // -- what Python says ------------------------------------------------------------------------------------------------------

  link.on("selected", (selection, buffers) => {
    state.chosen = bitsOf(buffers[0], count);
    state.chosenCount = selection.count;
    drawSelected(selection);
    changed();
  });
  link.on("column", (column, buffers) => {
    keepColumn(column, buffers[0]);
    wanted = column.name;
    showColumn(wanted);
  });
  link.on("landing", (landing) => { land(landing); lists.choose("query"); });

  view.onTheme((dark) => {
    state.dark = dark;
    root.style.setProperty("--mm-ground", dark ? GROUND.dark : GROUND.light);
    legend.draw(state.column, state.hidden, dark);
    drawQuery();
    changed();
  });
  setMode("move");
  drawQuery();
  drawSelected(hello.selection);
  lists.choose("query");
  const watch = new ResizeObserver(resize);
  watch.observe(stage);
  resize();
  // After the first picture: for many memories it takes seconds.
  link.ask("faith").then(({ body }) => {
    faithSaid.textContent = body.sentence + (body.sampled ? ` Worked out on a sample of ${body.sampled.toLocaleString("en")}.` : "");
    keepPicture();
  }).catch(view.fail);
  // For tests and measurements: what a person could see, as numbers.
  root.memlabMap = { frame, state, place, points, draw: paint, moved, zoom, under, times: (list) => { view.frameTimes = list; } };
  return () => {
    watch.disconnect();
    keepPicture.cancel();
    search.cancel();
    clearTimeout(idle);
    flight += 1;
  };
}

// Of lists too long to be arguments.
const least = (list) => list.reduce((a, b) => Math.min(a, b));
const most = (list) => list.reduce((a, b) => Math.max(a, b));

/** The bytes of a buffer, at the beginning of one of their own: typed arrays want that. */
function copyOf(view) {
  const bytes = view instanceof ArrayBuffer ? new Uint8Array(view) : new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  return bytes.slice().buffer;
}

/** Eight flags a byte, the first in the highest bit, as numpy packs them. */
function bitsOf(view, count) {
  const bytes = new Uint8Array(copyOf(view)), flags = new Uint8Array(count);
  for (let i = 0; i < count; i += 1) flags[i] = (bytes[i >> 3] >> (7 - (i & 7))) & 1;
  return flags;
}
function packed(flags) {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  for (let i = 0; i < flags.length; i += 1) if (flags[i]) bytes[i >> 3] |= 1 << (7 - (i & 7));
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

/** Points, what lies above them, and the legend, as a PNG in base 64. */
function pictureOf(points, above, { column, hidden, dark, faith, query, width, height }) {
  const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
  const font = "12px system-ui, sans-serif", ink = dark ? "#e6e6e6" : "#1b1b1b";
  context.font = font;
  const entries = column.values.map((value, code) => ({ text: `${value} (${column.counts[code]})`, code })).filter(({ code }) => !hidden[code]);
  const lines = [[]];
  let x = 12;
  for (const entry of entries) {
    const wide = context.measureText(entry.text).width + 34;
    if (x + wide > width && lines.at(-1).length) {
      lines.push([]);
      x = 12;
    }
    lines.at(-1).push({ ...entry, x });
    x += wide;
  }
  const said = [query ? `★ ${query}` : "", faith].filter(Boolean).flatMap((text) => wrapped(context, text, width - 24));
  canvas.width = Math.round(width);
  canvas.height = Math.round(height + 14 + 20 * lines.length + 17 * said.length + 6);
  context.fillStyle = dark ? GROUND.dark : GROUND.light;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(points, 0, 0, width, height);
  context.drawImage(above, 0, 0, width, height);
  context.font = font;
  context.textBaseline = "middle";
  lines.forEach((line, number) => {
    for (const { text, code, x: left } of line) {
      const look = lookOf(column, code, dark), y = height + 16 + 20 * number;
      context.save();
      context.translate(left + 6, y);
      context.beginPath();
      trace(context, look.shape, 4.6 * look.size);
      context.fillStyle = look.colour;
      context.fill();
      context.restore();
      context.fillStyle = ink;
      context.fillText(text, left + 16, y);
    }
  });
  said.forEach((line, number) => context.fillText(line, 12, height + 16 + 20 * lines.length + 17 * number));
  return canvas.toDataURL("image/png").split(",")[1];
}
function wrapped(context, text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (context.measureText(longer).width > width && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines.slice(0, 4);
}

export default { render: (context) => mount(context, { title: "Map of a memory", build }) };
