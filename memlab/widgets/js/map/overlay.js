// What lies above the points: the query with the lines to its hits, passages, the lasso, and the point in hand.

const DASHES = { hits: [], keyword: [7, 4], vector: [2, 4], passage: [10, 3, 2, 3] };

/** Places for the numbers of hits: beside their points, and beside one another where hits lie close together. */
function spread(places, query) {
  const apart = 19;
  const marks = places.map(([x, y], at) => {
    // Away from the query, or each another way round.
    const turn = query && Math.hypot(x - query[0], y - query[1]) > 1 ? Math.atan2(y - query[1], x - query[0]) : at * 2.4;
    return [x + 15 * Math.cos(turn), y + 15 * Math.sin(turn)];
  });
  const fixed = query ? [query] : [];
  for (let round = 0; round < 60; round += 1) {
    let still = true;
    for (let a = 0; a < marks.length; a += 1) {
      for (const other of [...marks.slice(0, a), ...fixed]) {
        const dx = marks[a][0] - other[0], dy = marks[a][1] - other[1], far = Math.hypot(dx, dy);
        if (far >= apart) continue;
        still = false;
        const push = (apart - far) / 2 + 0.2, [ux, uy] = far > 0.01 ? [dx / far, dy / far] : [Math.cos(a * 2.4), Math.sin(a * 2.4)];
        marks[a] = [marks[a][0] + ux * push, marks[a][1] + uy * push];
        if (!fixed.includes(other)) {
          other[0] -= ux * push;
          other[1] -= uy * push;
        }
      }
    }
    if (still) break;
  }
  return marks;
}

function overlayLayer() {
  const canvas = h("canvas", { class: "mm-overlay", "aria-hidden": "true" });
  const context = canvas.getContext("2d");

  const draw = (ratio, place, scene) => {
    const { points, landing, list, lookOfList, passages, lasso, hover, dark, near } = scene;
    const ink = dark ? "#ffffff" : "#1b1b1b", ground = dark ? GROUND.dark : GROUND.light;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, canvas.width / ratio, canvas.height / ratio);
    context.font = `600 11px ${getComputedStyle(canvas).fontFamily || "sans-serif"}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    const at = (row) => place(points[2 * row], points[2 * row + 1]);

    if (landing) {
      const hits = landing.lists[list] ?? [];
      const colour = lookOfList(list, dark);
      if (landing.place) {
        const [qx, qy] = place(...landing.place);
        for (const hit of [...hits].reverse()) {
          const [x, y] = at(hit.row);
          const wide = Math.max(1.5, 3.2 - 0.25 * (hit.rank - 1));
          context.beginPath();
          context.moveTo(qx, qy);
          context.lineTo(x, y);
          // A line in the colour of the ground below, so that it can be followed through a crowd.
          context.setLineDash([]);
          context.globalAlpha = 0.75;
          context.lineWidth = wide + 3;
          context.strokeStyle = ground;
          context.stroke();
          context.setLineDash(DASHES[list] ?? [4, 2]);
          context.globalAlpha = Math.max(0.55, 1 - 0.06 * (hit.rank - 1));
          context.lineWidth = wide;
          context.strokeStyle = colour;
          context.stroke();
        }
        context.globalAlpha = 1;
        context.setLineDash([]);
        context.save();
        context.translate(qx, qy);
        context.beginPath();
        trace(context, 6, 11);
        context.lineJoin = "round";
        context.lineWidth = 5;
        context.strokeStyle = ground;
        context.stroke();
        context.fillStyle = ink;
        context.fill();
        context.restore();
      }
      const marks = spread(hits.map((hit) => at(hit.row)), landing.place ? place(...landing.place) : null);
      hits.forEach((hit, number) => {
        const [x, y] = at(hit.row), [mx, my] = marks[number];
        context.lineWidth = 2;
        context.strokeStyle = colour;
        context.beginPath();
        context.arc(x, y, near + 3, 0, 2 * Math.PI);
        context.stroke();
        if (Math.hypot(mx - x, my - y) > 10) {
          context.lineWidth = 1;
          context.beginPath();
          context.moveTo(x, y);
          context.lineTo(mx, my);
          context.stroke();
        }
      });
      [...hits].reverse().forEach((hit) => {
        const [mx, my] = marks[hits.indexOf(hit)];
        context.beginPath();
        context.arc(mx, my, 8.5, 0, 2 * Math.PI);
        context.fillStyle = ground;
        context.fill();
        context.lineWidth = 2;
        context.strokeStyle = colour;
        context.stroke();
        context.fillStyle = ink;
        context.fillText(String(hit.rank), mx, my + 0.5);
      });
    }

    if (passages) {
      const [x0, y0] = at(passages.row);
      passages.passages.forEach((one, number) => {
        const [x, y] = place(one.x, one.y);
        context.lineWidth = 1.2;
        context.setLineDash([2, 3]);
        context.strokeStyle = ink;
        context.beginPath();
        context.moveTo(x0, y0);
        context.lineTo(x, y);
        context.stroke();
        context.setLineDash([]);
        context.fillStyle = ground;
        context.fillRect(x - 6.5, y - 6.5, 13, 13);
        context.strokeRect(x - 6.5, y - 6.5, 13, 13);
        context.fillStyle = ink;
        context.fillText(String(number + 1), x, y + 0.5);
      });
    }

    if (hover >= 0) {
      const [x, y] = at(hover);
      context.lineWidth = 4;
      context.strokeStyle = ground;
      context.beginPath();
      context.arc(x, y, near + 4, 0, 2 * Math.PI);
      context.stroke();
      context.lineWidth = 2;
      context.strokeStyle = ink;
      context.stroke();
    }

    if (lasso && lasso.length > 2) {
      context.beginPath();
      for (let i = 0; i < lasso.length; i += 2) {
        if (i) context.lineTo(lasso[i], lasso[i + 1]);
        else context.moveTo(lasso[i], lasso[i + 1]);
      }
      context.closePath();
      context.fillStyle = dark ? "rgba(255, 255, 255, 0.10)" : "rgba(0, 60, 120, 0.08)";
      context.fill();
      context.setLineDash([5, 4]);
      context.lineWidth = 1.5;
      context.strokeStyle = ink;
      context.stroke();
      context.setLineDash([]);
    }
  };

  return { canvas, draw };
}
