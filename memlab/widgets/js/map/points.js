// The layer of points. Every shape is drawn once into a small stamp, and the stamps are blended into the pixels here:
// the cost of a frame depends on the number of points alone and on no graphics card.

// Okabe and Ito's colours, and a grey for what is left over; lighter ones of the same hues on dark ground.
const SHADES = {
  light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#e3d532", "#8a8a8a"],
  dark: ["#3f9fe0", "#e69f00", "#1fb589", "#dd92bd", "#8fd0f5", "#f07a35", "#f0e442", "#a0a0a0"],
};
// Values with an order, from cividis: the first stands out most, on light ground and on dark.
const STEPS = {
  light: ["#00224e", "#173770", "#3b496c", "#575d6d", "#747475", "#8e8878", "#ab9f6f", "#c9b95f"],
  dark: ["#fee838", "#e3cf4b", "#c3b369", "#a59c74", "#8a8678", "#707173", "#575d6d", "#44506d"],
};
const GROUND = { light: "#ffffff", dark: "#151719" };
const FAINT = { light: "#d6d8db", dark: "#3a3f45" };

/** The outline of a shape around (0, 0): disc, square, triangle, diamond, triangle down, plus, star, small disc. */
function trace(path, shape, r) {
  const corners = (list) => {
    list.forEach(([x, y], at) => (at ? path.lineTo(x * r, y * r) : path.moveTo(x * r, y * r)));
    path.closePath();
  };
  if (shape === 1) corners([[-0.87, -0.87], [0.87, -0.87], [0.87, 0.87], [-0.87, 0.87]]);
  else if (shape === 2) corners([[0, -1.2], [1.1, 0.75], [-1.1, 0.75]]);
  else if (shape === 3) corners([[0, -1.22], [1.22, 0], [0, 1.22], [-1.22, 0]]);
  else if (shape === 4) corners([[0, 1.2], [1.1, -0.75], [-1.1, -0.75]]);
  else if (shape === 5) {
    const a = 0.42, b = 1.15;
    corners([[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]]);
  } else if (shape === 6) {
    corners(Array.from({ length: 10 }, (_, at) => {
      const turn = (at * Math.PI) / 5, far = at % 2 ? 0.56 : 1.3;
      return [Math.sin(turn) * far, -Math.cos(turn) * far];
    }));
  } else path.arc(0, 0, shape === 7 ? 0.72 * r : r, 0, 2 * Math.PI);
}

/** How a code of a column looks: colour, shape and size. Never colour alone. */
function lookOf(column, code, dark) {
  const theme = dark ? "dark" : "light";
  const at = code % 8;
  return column.ordered
    ? { colour: STEPS[theme][at], shape: 0, size: 1.25 - 0.09 * at }
    : { colour: SHADES[theme][at], shape: at, size: 1 };
}

/** A shape for the legend. */
function swatch(look) {
  const path = { parts: [], moveTo(x, y) { this.parts.push(`M${x} ${y}`); }, lineTo(x, y) { this.parts.push(`L${x} ${y}`); }, closePath() { this.parts.push("Z"); } };
  const round = look.shape === 0 || look.shape === 7;
  if (!round) trace(path, look.shape, 5);
  const inside = round
    ? svg("circle", { r: 5.4 * (look.shape === 7 ? 0.72 : look.size), fill: look.colour })
    : svg("path", { d: path.parts.join(""), fill: look.colour });
  return svg("svg", { class: "mm-swatch", viewBox: "-8 -8 16 16", "aria-hidden": "true" }, inside);
}

/** The pixels of a stamp that are not empty: where, and their colour with its opacity. */
function makeStamp({ shape, r, fill: colour, edge, edgeWidth, opacity }) {
  const reach = Math.ceil(r * 1.35 + edgeWidth) + 1, size = 2 * reach + 1;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.translate(reach + 0.5, reach + 0.5);
  context.globalAlpha = opacity;
  context.beginPath();
  trace(context, shape, r);
  if (edge) {
    context.lineWidth = 2 * edgeWidth;
    context.lineJoin = "round";
    context.strokeStyle = edge;
    context.stroke();
  }
  context.globalAlpha = edge ? 1 : opacity;
  context.fillStyle = colour;
  context.fill();
  const { data } = context.getImageData(0, 0, size, size);
  const across = [], down = [], colours = [];
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      const at = 4 * (y * size + x);
      if (data[at + 3] < 4) continue;
      across.push(x - reach);
      down.push(y - reach);
      colours.push(((data[at + 3] << 24) | (data[at + 2] << 16) | (data[at + 1] << 8) | data[at]) >>> 0);
    }
  }
  return { reach, across: Int16Array.from(across), down: Int16Array.from(down), colours: Uint32Array.from(colours) };
}

function pointLayer(points, count) {
  const canvas = h("canvas", { class: "mm-points", "aria-hidden": "true" });
  const context = canvas.getContext("2d", { alpha: false, willReadFrequently: true });
  let image = null, pixels = null, stamps = new Map(), stampKey = "";

  // The order in which a part of the points stands for all: every n-th of a shuffled order is an even sample.
  const shuffled = new Uint32Array(count);
  let seed = 12345;
  for (let i = 0; i < count; i += 1) {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    shuffled[i] = shuffled[j];
    shuffled[j] = i;
  }

  const resize = (width, height) => {
    if (canvas.width === width && canvas.height === height && image) return;
    canvas.width = width;
    canvas.height = height;
    image = context.createImageData(width, height);
    pixels = new Uint32Array(image.data.buffer);
    stamps.clear();
  };

  const stampOf = (kind, look, base, dark) => {
    const key = `${kind} ${look.colour} ${look.shape} ${look.size}`;
    if (!stamps.has(key)) {
      const theme = dark ? "dark" : "light";
      const r = base * look.size;
      const width = canvas.width;
      const made = makeStamp(
        kind === "faint"
          ? { shape: 0, r: 0.75 * r, fill: FAINT[theme], edge: null, edgeWidth: 0, opacity: 0.9 }
          : kind === "chosen"
            ? { shape: look.shape, r: r * 1.25, fill: look.colour, edge: dark ? "#ffffff" : "#111111", edgeWidth: Math.max(1.4, 0.35 * base), opacity: 1 }
            : { shape: look.shape, r, fill: look.colour, edge: base > 2.4 ? GROUND[theme] : null, edgeWidth: base > 2.4 ? 0.9 : 0, opacity: base > 2.4 ? 1 : 0.8 },
      );
      made.offsets = Int32Array.from(made.across, (dx, at) => made.down[at] * width + dx);
      stamps.set(key, made);
    }
    return stamps.get(key);
  };

  const put = (stamp, x, y, width, height) => {
    const { reach, offsets, colours, across, down } = stamp;
    const whole = x >= reach && y >= reach && x < width - reach && y < height - reach;
    const base = y * width + x;
    for (let at = 0; at < offsets.length; at += 1) {
      if (!whole) {
        const px = x + across[at], py = y + down[at];
        if (px < 0 || py < 0 || px >= width || py >= height) continue;
      }
      const colour = colours[at], a = colour >>> 24;
      if (a === 255) pixels[base + offsets[at]] = colour;
      else {
        const under = pixels[base + offsets[at]], b = 255 - a;
        // Two channels at a time; 257 / 65536 is 1 / 255 closely enough.
        const rb = (((colour & 0xff00ff) * a + (under & 0xff00ff) * b) >>> 8) & 0xff00ff;
        const g = ((((colour >>> 8) & 0xff) * a + ((under >>> 8) & 0xff) * b) >>> 8) & 0xff;
        pixels[base + offsets[at]] = (0xff000000 | rb | (g << 8)) >>> 0;
      }
    }
  };

  /**
   * Draw all points, or `most` of them while the map moves; returns how many.
   *   frame: { x, y, scale } the place in the middle and device pixels a unit
   *   look: { column, codes, hidden, found, chosen, dark, radius }
   */
  const draw = (frame, look, most = Infinity) => {
    const { width, height } = canvas;
    const { column, codes, hidden, found, chosen, dark, radius } = look;
    const key = `${width} ${column.name} ${column.values.length} ${dark} ${radius.toFixed(2)}`;
    if (key !== stampKey) {
      stamps.clear();
      stampKey = key;
    }
    const ground = dark ? GROUND.dark : GROUND.light;
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(ground.slice(at, at + 2), 16));
    pixels.fill((0xff000000 | (b << 16) | (g << 8) | r) >>> 0);
    const looks = column.values.map((_, code) => lookOf(column, code, dark));
    const stampsOf = ["faint", "plain", "chosen"].map((kind) => looks.map((one) => stampOf(kind, one, radius, dark)));
    const middleX = width / 2, middleY = height / 2;
    const part = Math.min(count, most);
    const late = [];
    let drawn = 0;
    const one = (i, level) => {
      const x = Math.round(middleX + (points[2 * i] - frame.x) * frame.scale);
      const y = Math.round(middleY - (points[2 * i + 1] - frame.y) * frame.scale);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) return;
      put(stampsOf[level][codes[i]], x, y, width, height);
      drawn += 1;
    };
    for (let at = 0; at < part; at += 1) {
      const i = part === count ? at : shuffled[at];
      if (hidden[codes[i]]) continue;
      // What was looked for or chosen is drawn above the rest.
      if (chosen[i] || (found && found[i])) late.push(i);
      else one(i, found ? 0 : 1);
    }
    for (const i of late) if (!chosen[i]) one(i, 1);
    for (const i of late) if (chosen[i]) one(i, 2);
    context.putImageData(image, 0, 0);
    return drawn;
  };

  return { canvas, resize, draw };
}
