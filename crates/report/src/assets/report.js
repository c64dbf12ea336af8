"use strict";
// The charts of a report. Data are in #refault-charts; nothing is loaded, nothing is sent.
(() => {
  const all = JSON.parse(document.getElementById("refault-charts").textContent);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Numbers as people read them, as units.rs has them.
  const digits = n => Number.isInteger(n) ? n.toLocaleString("en-US")
    : Math.abs(n) >= 1000 ? Math.round(n).toLocaleString("en-US") : String(+n.toPrecision(4));
  const stepped = (n, base, names) => {
    let at = 0;
    while (Math.abs(n) >= base && at < names.length - 1) { n /= base; at++; }
    return +n.toPrecision(3) + " " + names[at];
  };
  const seconds = n => n === 0 ? "0 s" : Math.abs(n) < 1e-6 ? +(n * 1e9).toPrecision(3) + " ns"
    : Math.abs(n) < 1e-3 ? +(n * 1e6).toPrecision(3) + " µs" : Math.abs(n) < 1 ? +(n * 1e3).toPrecision(3) + " ms"
    : +n.toPrecision(4) + " s";
  const units = {
    bytes: n => stepped(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
    percent: n => (Math.abs(n) < 1e-6 ? 0 : +n.toPrecision(4)) + " %",
    count: digits,
    number: digits,
    seconds: seconds,
    nanoseconds: n => seconds(n / 1e9),
  };
  const short = { ...units, count: n => Math.abs(n) >= 1e4 ? stepped(n, 1000, ["", "k", "M", "G", "T"]).trim() : digits(n) };
  short.number = short.count;
  const powers = Array.from({ length: 52 }, (_, n) => 2 ** n);
  const text = (fmt, n) => n == null || !isFinite(n) ? "no value" : fmt(n);

  // Misses or hits: one word on the whole page. Texts carry both, as words.rs writes them.
  let showsHits = false;
  const said = words => words.replace(/\ue000([^\ue001]*)\ue001([^\ue002]*)\ue002/g, (_, misses, hits) => showsHits ? hits : misses);
  // Charts whose sizes are on a logarithmic axis.
  const isLog = {};

  // Areas on top of each other: what is shown is the sum so far, what is told is the number itself.
  const stack = (data, hidden) => {
    const sum = new Array(data[0].length).fill(0);
    const stacked = data.map((values, i) => i === 0 || hidden(i) ? values : values.map((v, j) => sum[j] += v || 0));
    const bands = [];
    for (let i = 1; i < data.length; i++) {
      const above = data.findIndex((_, j) => j > i && !hidden(j));
      if (!hidden(i) && above > 0) bands.push({ series: [above, i] });
    }
    return { stacked, bands };
  };

  const marks = (c, u) => {
    const { ctx, bbox } = u, dpr = uPlot.pxRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = css("--soft");
    ctx.font = 11 * dpr + "px system-ui, DejaVu Sans, sans-serif";
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    const place = mark => Math.round(u.valToPos(mark.at, "x", true));
    const inside = x => x >= bbox.left && x <= bbox.left + bbox.width;
    const sorted = [...c.marks].sort((a, b) => a.at - b.at).filter(mark => inside(place(mark)));
    ctx.setLineDash([4 * dpr, 4 * dpr]);
    for (const x of sorted.map(place)) { ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke(); }
    // Names on paper of their own, above all lines.
    let level = 0, last = -1e9;
    for (const mark of sorted) {
      const x = place(mark), wide = ctx.measureText(mark.label).width, left = x + wide + 8 * dpr > bbox.left + bbox.width;
      const from = left ? x - wide - 4 * dpr : x + 4 * dpr;
      level = from < last ? level + 1 : 0;
      last = Math.max(last, from + wide + 6 * dpr);
      const y = bbox.top + (3 + 14 * level) * dpr;
      ctx.fillStyle = css("--paper");
      ctx.fillRect(from - 2 * dpr, y - dpr, wide + 4 * dpr, 13 * dpr);
      ctx.fillStyle = css("--soft");
      ctx.fillText(mark.label, from, y);
    }
    ctx.restore();
  };

  const dashes = { solid: undefined, long: [18, 5], dashes: [8, 5], mixed: [9, 4, 2, 4], triple: [9, 4, 2, 4, 2, 4], dots: [2, 4] };
  const groups = {};
  const zoom = (u, c, min, max, reset) => {
    for (const other of (c.time ? groups[c.time] : [u])) other.setScale("x", { min, max });
    for (const other of (c.time ? groups[c.time] : [u])) other.resetButton.hidden = reset;
  };

  function chart(box, c, id) {
    const flip = v => v == null || !c.share || !showsHits ? v : 100 - v;
    const X = units[c.x.unit], Y = units[c.y.unit];
    const raw = [c.xs, ...c.series.map(s => s.values.map(flip))];
    const isStacked = c.shape === "stacked", isBars = c.shape === "bars";
    const start = isStacked ? stack(raw, () => false) : { stacked: raw, bands: [] };
    const xName = at => c.labels && c.labels.length ? c.labels[Math.round(at)] ?? "" : short[c.x.unit](at);
    const grid = { stroke: css("--rule"), width: 1 };
    const axis = { stroke: css("--soft"), grid, ticks: grid, font: "12px system-ui, DejaVu Sans, sans-serif",
      labelFont: "12px system-ui, DejaVu Sans, sans-serif", labelSize: 20, labelGap: 0 };
    const first = c.xs[0], last = c.xs[c.xs.length - 1];
    const canBeLog = c.x.unit === "bytes" && !(c.labels && c.labels.length) && first > 0 && last > 10 * first;
    const log = canBeLog && isLog[id];
    const pad = c.labels && c.labels.length ? .5 : 0;
    // Names of marks have room above what is drawn.
    const above = c.marks.length > 2 ? 1.22 : c.marks.length ? 1.14 : 1.05;
    const series = c.series.map((s, i) => {
      const stroke = css("--c-" + s.colour);
      return {
        label: said(s.name), stroke, width: isStacked ? 1 : s.dash === "solid" ? 3 : 2, dash: dashes[s.dash],
        fill: isStacked ? stroke + "99" : isBars ? stroke + "cc" : undefined,
        paths: isBars ? uPlot.paths.bars({ size: [.85, 60], align: 0 }) : undefined,
        points: { show: !isStacked && !isBars && c.xs.length <= 40, size: 5, fill: stroke },
        value: (u, _, __, at) => at == null ? "" : text(Y, raw[i + 1][at]),
      };
    });
    const options = {
      width: Math.max(260, box.clientWidth), height: box.clientWidth < 500 ? 260 : 300,
      padding: [12, c.labels && c.labels.length ? 34 : 22, 0, 0],
      scales: {
        x: { time: false, distr: log ? 3 : 1, log: 2, range: (u, min, max) => min === max ? [min - 1, max + 1] : [min - (u.zoomed ? 0 : pad), max + (u.zoomed ? 0 : pad)] },
        y: { range: (u, min, max) => [Math.min(0, min ?? 0), (max > 0 ? max * above : 1)] },
      },
      series: [{ label: said(c.x.label), value: (u, n, _, at) => at == null ? "" : c.labels && c.labels.length ? c.labels[at] : text(X, n) }, ...series],
      axes: [
        log ? { ...axis, size: 32, label: c.x.label, values: (u, at) => at.map(xName),
          splits: u => powers.filter(n => n >= u.scales.x.min && n <= u.scales.x.max).filter((_, i, all) => i % Math.ceil(all.length * 70 / box.clientWidth) === 0) }
        : { ...axis, size: 32, label: said(c.x.label), values: (u, at) => at.map(xName), space: c.labels && c.labels.length ? 80 : 70,
          incrs: c.x.unit === "bytes" ? powers : c.labels && c.labels.length ? powers : undefined },
        { ...axis, label: said(c.y.label), values: (u, at) => at.map(short[c.y.unit]), size: 72,
          incrs: c.y.unit === "bytes" ? powers : c.y.unit === "count" ? [1, 2, 5].flatMap(n => Array.from({ length: 14 }, (_, p) => n * 10 ** p)).sort((a, b) => a - b) : undefined },
      ],
      bands: start.bands,
      cursor: { sync: c.time ? { key: c.time, scales: ["x", null] } : undefined, drag: { x: true, y: false, setScale: false } },
      legend: { live: true, markers: { width: 3, dash: (u, i) => i && ({ dots: "dotted" }[c.series[i - 1].dash] ?? (dashes[c.series[i - 1].dash] ? "dashed" : "solid")) } },
      hooks: {
        draw: [u => marks(c, u)],
        setSelect: [u => {
          if (u.select.width < 4) return;
          u.zoomed = true;
          zoom(u, c, u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"), false);
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        }],
        setSeries: [(u, i, opts) => {
          if (!isStacked || opts.show == null) return;
          const next = stack(raw, i => !u.series[i].show);
          u.delBand(null);
          next.bands.forEach(band => u.addBand(band));
          u.setData(next.stacked, false);
          u.redraw();
        }],
      },
    };
    const u = new uPlot(options, start.stacked, box);
    const button = document.createElement("button");
    Object.assign(button, { className: "reset", type: "button", hidden: true, textContent: "Show all of it" });
    const whole = () => { u.zoomed = false; zoom(u, c, c.xs[0] - pad, c.xs[c.xs.length - 1] + pad, true); };
    button.onclick = whole;
    u.over.addEventListener("dblclick", whole);
    u.resetButton = button;
    box.append(button);
    let axisButton;
    if (canBeLog) {
      axisButton = document.createElement("button");
      Object.assign(axisButton, { className: "axis-switch", type: "button", textContent: log ? "Even axis" : "Logarithmic axis" });
      axisButton.onclick = () => { isLog[id] = !log; redrawOne(id); };
      box.append(axisButton);
    }
    if (c.time) (groups[c.time] ||= []).push(u);
    // The legend by keyboard.
    u.root.querySelectorAll(".u-legend .u-series").forEach((row, i) => {
      if (i === 0) return;
      const head = row.querySelector("th");
      head.tabIndex = 0;
      head.setAttribute("role", "button");
      const tell = () => head.setAttribute("aria-pressed", String(u.series[i].show));
      head.addEventListener("click", () => setTimeout(tell));
      head.addEventListener("keydown", e => {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); e.stopPropagation(); head.click(); }
      });
      tell();
    });
    let at = -1;
    box.onkeydown = e => {
      if (e.target !== box || (e.key !== "ArrowLeft" && e.key !== "ArrowRight")) return;
      e.preventDefault();
      at = Math.max(0, Math.min(c.xs.length - 1, at + (e.key === "ArrowRight" ? 1 : -1)));
      u.setCursor({ left: u.valToPos(c.xs[at], "x"), top: u.over.clientHeight / 2 });
    };
    return {
      resize: () => u.setSize({ width: Math.max(260, box.clientWidth), height: u.height }),
      destroy: () => { if (c.time) groups[c.time] = groups[c.time].filter(other => other !== u); u.destroy(); button.remove(); axisButton?.remove(); },
    };
  }

  // Cividis: dark blue to yellow, the same order for all colour vision and in grey.
  const ramp = [[0, 32, 77], [42, 63, 109], [87, 93, 109], [124, 123, 120], [166, 157, 117], [212, 193, 98], [255, 234, 70]];
  const shade = share => {
    const at = share * (ramp.length - 1), low = Math.min(ramp.length - 2, Math.floor(at)), part = at - low;
    return ramp[low].map((v, i) => Math.round(v + (ramp[low + 1][i] - v) * part));
  };

  function heat(box, h) {
    const X = units[h.x.unit];
    box.innerHTML = '<div class="heatrow"><div class="heatnames" aria-hidden="true"></div><div><canvas class="heat"></canvas>' +
      '<div class="heataxis"></div><p class="facts even"></p></div></div><p class="readout" aria-live="polite"></p><p class="facts steps"></p>';
    const canvas = box.querySelector("canvas"), readout = box.querySelector(".readout");
    canvas.width = h.columns; canvas.height = h.rows;
    canvas.style.imageRendering = "pixelated";
    const ctx = canvas.getContext("2d"), image = ctx.createImageData(h.columns, h.rows);
    const most = h.cells.reduce((a, b) => Math.max(a, b), 1);
    const scale = n => Math.log1p(n) / Math.log1p(most);
    const empty = css("--wash"), none = [0, 2, 4].map(i => parseInt(empty.slice(1 + i, 3 + i), 16));
    h.cells.forEach((n, i) => image.data.set([...(n > 0 ? shade(scale(n)) : none), 255], 4 * i));
    ctx.putImageData(image, 0, 0);
    // The legend has the colours of cells: none, one, and steps up to the most.
    const steps = [...new Set([0, ...[0, 1, 2, 3, 4].map(i => Math.round(most ** (i / 4)))])];
    box.querySelector(".steps").append(h.what + " in a cell: ", ...steps.map(n => {
      const step = document.createElement("span"), cell = document.createElement("i");
      cell.style.background = n > 0 ? `rgb(${shade(scale(n))})` : empty;
      step.append(cell, n === 0 ? "none" : units.count(n));
      return step;
    }));
    const axis = box.querySelector(".heataxis");
    [0, .25, .5, .75, 1].forEach(share => {
      const span = document.createElement("span");
      span.textContent = X(h.xs[Math.round(share * h.columns)]);
      axis.append(span);
    });
    box.querySelector(".even").textContent = h.x.label;
    // The largest have names first; those that would lie on one have none.
    const names = box.querySelector(".heatnames"), taken = [];
    [...h.borders].sort((a, b) => b[2] - a[2]).forEach(([row, name]) => {
      const y = Math.min(row / h.rows * 340, 326);
      if (taken.some(other => Math.abs(other - y) < 15)) return;
      taken.push(y);
      const span = document.createElement("span");
      span.textContent = name; span.title = name; span.style.top = y + "px";
      names.append(span);
    });
    const tell = (column, row) => {
      const n = h.cells[row * h.columns + column];
      readout.textContent = `${X(h.xs[column])} to ${X(h.xs[column + 1])}, ${h.labels[row]}: ${digits(n)} ${h.what}`;
    };
    canvas.onmousemove = e => {
      const r = canvas.getBoundingClientRect(), inside = (at, size, n) => Math.max(0, Math.min(n - 1, Math.floor(at / size * n)));
      tell(inside(e.clientX - r.left, r.width, h.columns), inside(e.clientY - r.top, r.height, h.rows));
    };
    let at = [0, 0];
    box.onkeydown = e => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (!step) return;
      e.preventDefault();
      at = [Math.max(0, Math.min(h.columns - 1, at[0] + step[0])), Math.max(0, Math.min(h.rows - 1, at[1] + step[1]))];
      tell(...at);
    };
    return { resize() {}, destroy() { box.innerHTML = ""; } };
  }

  // All of them; again when colours or the word change.
  let drawn = [];
  const drawOne = ({ id, kind, data }) => {
    const box = document.querySelector(`[data-plot="${CSS.escape(id)}"]`);
    return kind === "heat" ? heat(box, data) : chart(box, data, id);
  };
  const draw = () => {
    drawn.forEach(one => one.destroy());
    drawn = all.map(drawOne);
  };
  const redrawOne = id => {
    const at = all.findIndex(one => one.id === id);
    drawn[at].destroy();
    drawn[at] = drawOne(all[at]);
  };
  draw();
  const word = document.getElementById("word");
  if (word) {
    word.parentElement.hidden = false;
    word.onclick = () => {
      showsHits = !showsHits;
      document.documentElement.dataset.word = showsHits ? "hits" : "misses";
      draw();
    };
  }
  // Passages are folded away until a link leads to one.
  const unfold = () => document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details")?.setAttribute("open", "");
  document.querySelectorAll("a[href^='#']").forEach(link => link.addEventListener("click", () =>
    document.getElementById(link.getAttribute("href").slice(1))?.closest("details")?.setAttribute("open", "")));
  addEventListener("hashchange", unfold);
  unfold();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", draw);
  addEventListener("afterprint", draw);
  let waits;
  addEventListener("resize", () => { clearTimeout(waits); waits = setTimeout(() => drawn.forEach(one => one.resize()), 100); });

  // Tables that are wider than there is room say so.
  document.querySelectorAll(".scroll").forEach(scroll => {
    const more = document.createElement("p");
    Object.assign(more, { className: "more", textContent: "There are more columns: scroll sideways →", hidden: true });
    scroll.before(more);
    new ResizeObserver(() => more.hidden = scroll.scrollWidth <= scroll.clientWidth + 1).observe(scroll);
  });

  // Tables that are searched and sorted.
  document.querySelectorAll("table.sortable").forEach(table => {
    const body = table.tBodies[0], rows = [...body.rows];
    const search = table.closest("figure").querySelector("input[type=search]");
    search?.addEventListener("input", () => {
      const wanted = search.value.toLowerCase();
      rows.forEach(row => row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted));
    });
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.replaceChildren(button);
      button.onclick = () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        [...table.tHead.rows[0].cells].forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = row => row.cells[i].dataset.v ?? row.cells[i].textContent;
        const order = (a, b) => isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b);
        body.append(...[...rows].sort((a, b) => down ? -order(a, b) : order(a, b)));
      };
    });
  });
})();
