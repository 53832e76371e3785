// The page's script: panes linked by source lines, changes of passes, layouts, banks.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// ---- colours --------------------------------------------------------------------------------

const TOKENS = /(;.*$|\/\/.*$|\/\*[0-9a-f]+\*\/)|("[^"]*")|([%@$][\w.$]+|\b(?:UR?|R|P)\d+\b)|(\b(?:func|define|ret|br|call|load|store|phi|label|getelementptr|cf\.\w+)\b)|(\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?)\b)/gim;
const KINDS = ["c", "s", "f", "k", "n"];

function coloured(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = KINDS[match.slice(1).findIndex((group) => group !== undefined)];
    parts.push(element("span", { class: kind }, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

function byRuns(text, runs) {
  const parts = [];
  let at = 0;
  for (const [kind, length] of runs) {
    const piece = text.slice(at, at + length);
    parts.push(kind ? element("span", { class: kind }, piece) : piece);
    at += length;
  }
  parts.push(text.slice(at));
  return parts;
}

// ---- panes ----------------------------------------------------------------------------------

const keyOf = ([file, line]) => `${file}:${line}`;
const chainsOfKey = new Map();
data.chains.forEach((chain, number) => {
  for (const frame of chain) {
    const key = keyOf(frame);
    if (!chainsOfKey.has(key)) chainsOfKey.set(key, new Set());
    chainsOfKey.get(key).add(number);
  }
});
const panes = new Map();

function addPane(name, title, rows) {
  const pane = element("div", { class: "pane", "data-pane": name }, element("h2", {}, title), rows);
  panes.set(name, pane);
  $("panes").append(pane);
}

function sourcePane() {
  const rows = element("div", { class: "rows" });
  data.files.forEach((file, number) => {
    if (number) rows.append(element("div", { class: "row file", title: file.path }, file.name));
    let before = null;
    for (const [line, text, runs] of file.lines) {
      if (before !== null && line !== before + 1) rows.append(element("div", { class: "row file" }, "..."));
      before = line;
      const key = `${number}:${line}`;
      const used = chainsOfKey.has(key);
      rows.append(element("div", {
        class: used ? "row used" : "row", "data-line": used ? key : null,
        onclick: () => used && select(key, "python"),
      }, element("span", { class: "no" }, String(line)), ...byRuns(text, runs)));
    }
  });
  addPane("python", data.files.length ? data.files[0].name : "source", rows);
}

function stagePane({ stage, title, seconds, text: whole, chains }) {
  const rows = element("div", { class: "rows" });
  const lines = whole.split("\n");
  const numbers = chains.flatMap(([number, count]) => Array(count).fill(number));
  for (const [index, text] of lines.entries()) {
    const chain = numbers[index];
    const row = element("div", { class: "row", "data-c": chain < 0 ? null : chain }, ...coloured(text));
    if (chain >= 0) row.addEventListener("click", () => select(keyOf(data.chains[chain][0]), stage, chain));
    rows.append(row);
  }
  const time = seconds ? ` - ${(seconds * 1e3).toFixed(1)} ms` : "";
  addPane(stage, `${title}${time} - ${lines.length} lines`, rows);
}

let selected = null;

// The row to scroll to: the start of the part of a pane with the most highlighted lines.
const NEAR = 12;

function densest(rows) {
  let best = { count: 0, row: null };
  for (let start = 0, end = 0; start < rows.length; start++) {
    while (end < rows.length && rows[end][0] - rows[start][0] < NEAR) end++;
    if (end - start > best.count) best = { count: end - start, row: rows[start][1] };
  }
  return best.row;
}

// Highlights in every pane the lines that come from a source line; `via`: the calls that led there.
function select(key, from, chain = null) {
  selected = key;
  const numbers = chainsOfKey.get(key) ?? new Set();
  const callers = new Set();
  for (const number of chain === null ? numbers : [chain]) {
    for (const frame of data.chains[number]) if (keyOf(frame) !== key) callers.add(keyOf(frame));
  }
  for (const [name, pane] of panes) {
    const hits = [];
    for (const [index, row] of pane.querySelectorAll(".row").entries()) {
      const hit = row.dataset.line === key || (row.dataset.c && numbers.has(Number(row.dataset.c)));
      row.classList.toggle("hit", Boolean(hit));
      row.classList.toggle("via", !hit && callers.has(row.dataset.line));
      if (hit) hits.push([index, row]);
    }
    if (name !== from && hits.length && !pane.hidden) {
      pane.scrollTop = Math.max(0, densest(hits).offsetTop - pane.clientHeight / 3);
    }
  }
  showLine(key);
}

function counterparts(key) {
  const numbers = chainsOfKey.get(key) ?? new Set();
  return Object.fromEntries([...panes].filter(([name]) => name !== "python").map(([name, pane]) =>
    [name, [...pane.querySelectorAll("[data-c]")].filter((row) => numbers.has(Number(row.dataset.c))).length]));
}

function chips() {
  const shown = new Set(["python", data.panes.some((p) => p.stage === "ttgir") ? "ttgir" : "ttir",
    data.panes.some((p) => p.stage === "asm") ? "asm" : "ptx"]);
  if (!data.panes.some((pane) => shown.has(pane.stage)) && data.panes.length) shown.add(data.panes.at(-1).stage);
  $("chips").append(element("span", { class: "hint" }, "Click a line to see what it became:"));
  for (const [name, pane] of panes) {
    pane.hidden = !shown.has(name);
    if (name === "python") continue;
    const title = data.panes.find((each) => each.stage === name).title;
    const chip = element("button", {
      class: "chip", "data-chip": name, "aria-pressed": String(!pane.hidden),
      onclick: () => {
        pane.hidden = !pane.hidden;
        chip.setAttribute("aria-pressed", String(!pane.hidden));
        if (selected) select(selected, "python");
      },
    }, title);
    $("chips").append(chip);
  }
  for (const text of data.missing) $("chips").append(element("span", { class: "why missing" }, text));
}

// ---- explanation ----------------------------------------------------------------------------

const explained = data.explanation;
const rowsOf = (place) => explained.rows.filter((row) => [row.loc, ...row.callers].includes(place));

function opTable(rows) {
  const inside = (row) => row.callers.length ? [element("div", { class: "hint" }, `${row.loc.split("/").at(-1)}  ${textOf(row.loc)}`)] : [];
  const cells = rows.map((row) => [
    [`${row.op} ${row.tile}`, ...inside(row)], [row.how], row.bytes ? [`${row.bytes} B`] : [],
    [row.through, ...row.notes.map((note) => element("div", { class: "why" }, note)),
      ...((row.conflicts ?? 1) > 1 ? [element("div", { class: "why" }, `${row.conflicts}-way bank conflicts`)] : [])].filter((part) => part !== ""),
  ]);
  const titles = ["op", "lowered to", "each", "path, and why not better"];
  const used = titles.map((_, column) => cells.some((row) => row[column].length));
  const only = (row) => row.filter((_, column) => used[column]);
  return element("table", {}, element("tr", {}, ...only(titles).map((t) => element("th", {}, t))),
    ...cells.map((row) => element("tr", {}, ...only(row).map((parts, column) => element("td", { class: column < 2 ? "code" : "" }, ...parts)))));
}

function showLine(key) {
  const [number, line] = key.split(":").map(Number);
  const file = data.files[number];
  const rows = explained ? rowsOf(`${file.path}:${line}`) : [];
  const counts = Object.entries(counterparts(key)).map(([name, count]) => `${count} ${data.panes.find((p) => p.stage === name).title}`);
  const silent = Object.values(counterparts(key)).at(-1) === 0 ? "; constants and indices need no instruction" : "";
  $("line").replaceChildren(
    element("div", { class: "hint" }, `${file.name}:${line} - lines: ${counts.join(", ")}${silent}`),
    rows.length ? opTable(rows) : "");
}

function whySection() {
  const section = $("why");
  if (!explained) return;
  section.append(element("p", {}, data.summary.join("; ")));
  const jump = (place) => {
    const at = place.lastIndexOf(":");
    const number = data.files.findIndex((file) => file.path === place.slice(0, at));
    show("code");
    select(`${number}:${place.slice(at + 1)}`, "none");
  };
  if (explained.notes.length) section.append(element("ul", {}, ...explained.notes.map((note) => element("li", { class: "why" }, note))));
  const spills = spillsByLine();
  if (spills.length) {
    section.append(element("p", {}, "Spill stores and loads by line: ", ...spills.flatMap(([place, count]) =>
      [element("button", { class: "link", onclick: () => jump(place) }, place.split("/").at(-1)), ` ${count}  `])));
  }
  const places = [...new Set(explained.rows.map((row) => [...(row.loc ? [row.loc] : []), ...row.callers].at(-1)))];
  for (const place of places) {
    const rows = explained.rows.filter((row) => [...(row.loc ? [row.loc] : []), ...row.callers].at(-1) === place);
    section.append(element("div", {}, place ? element("button", { class: "link", onclick: () => jump(place) },
      place.split("/").at(-1)) : "no line", " ", element("code", {}, place ? textOf(place) : "")), opTable(rows));
  }
  if (data.nests.length) section.append(element("h3", {}, "Loop nests, in the order of execution"));
  for (const nest of data.nests) section.append(element("p", {}, nest));
}

// Instructions of the machine code that access spilled registers, by the kernel's line; the most first.
function spillsByLine() {
  const pane = data.panes.find(({ stage }) => stage === "sass_lines");
  if (!pane) return [];
  const numbers = pane.chains.flatMap(([number, count]) => Array(count).fill(number));
  const counts = new Map();
  pane.text.split("\n").forEach((line, index) => {
    if (numbers[index] < 0 || !/\b(STL|LDL)\b/.test(line)) return;
    const [file, number] = data.chains[numbers[index]].at(-1);
    const place = `${data.files[file].path}:${number}`;
    counts.set(place, (counts.get(place) ?? 0) + 1);
  });
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function textOf(place) {
  const at = place.lastIndexOf(":");
  const file = data.files.find((each) => each.path === place.slice(0, at));
  const found = file?.lines.find(([line]) => line === Number(place.slice(at + 1)));
  return found ? found[1].trim() : "";
}

// ---- passes ---------------------------------------------------------------------------------

function applyEdits(before, edits) {
  if (!edits.length) return before;
  const after = [];
  let at = 0;
  for (const [kind, value] of edits) {
    if (kind === "=") { after.push(...before.slice(at, at + value)); at += value; }
    else if (kind === "-") at += value;
    else { after.push(...value); if (kind === "~") at += value.length; }
  }
  return after;
}

const texts = [];
data.passes.reduce((text, pass) => {
  const before = pass.start ?? text;
  const after = applyEdits(before, pass.edits);
  texts.push([before, after]);
  return after;
}, []);

const CONTEXT = 3;

function changeRows(number, whole) {
  const [before] = texts[number];
  const rows = [];
  let at = 0;
  const line = (id, kind) => element("div", { class: `row ${kind}` }, `${{ add: "+", del: "-" }[kind] ?? " "} `, ...coloured(data.pass_lines[id]));
  let equal = [];
  const flush = (isLast) => {
    const head = rows.length ? CONTEXT : 0;
    const tail = isLast ? 0 : CONTEXT;
    const left = equal.length - head - tail;
    const ids = whole || left <= 1 ? equal : equal.slice(0, head);
    rows.push(...ids.map((id) => line(id, "")));
    if (ids.length < equal.length) {
      rows.push(element("div", { class: "row skip" }, `  ${left} equal lines`));
      rows.push(...(tail ? equal.slice(-tail) : []).map((id) => line(id, "")));
    }
    equal = [];
  };
  for (const [kind, value] of data.passes[number].edits) {
    if (kind === "=") { equal.push(...before.slice(at, at + value)); at += value; }
    else if (kind === "~") { equal.push(...value); at += value.length; }
    else {
      flush(false);
      if (kind === "-") { rows.push(...before.slice(at, at + value).map((id) => line(id, "del"))); at += value; }
      else rows.push(...value.map((id) => line(id, "add")));
    }
  }
  if (!data.passes[number].edits.length) equal = before;
  flush(data.passes[number].edits.length > 0);
  return rows;
}

function showPass(number, whole = false) {
  const pass = data.passes[number];
  [...$("passlist").children].forEach((button, index) => button.setAttribute("aria-selected", String(index === number)));
  const rules = Object.entries(pass.rules).map(([name, count]) => `${name} ${count}x`).join(", ");
  $("change").replaceChildren(
    element("h3", {}, pass.name),
    element("p", { class: "hint" }, `${pass.ms} ms; ${pass.edits.length ? `${texts[number][0].length} lines before, ${texts[number][1].length} after` : "no change"}` +
      (rules ? `; rules: ${rules}` : "")),
    element("button", { class: "chip", "aria-pressed": String(whole), onclick: () => showPass(number, !whole) }, "whole text"),
    element("div", {}, ...changeRows(number, whole)));
}

function passesSection() {
  data.passes.forEach((pass, number) => {
    const added = texts[number][1].length - texts[number][0].length;
    $("passlist").append(element("button", { class: pass.edits.length ? "" : "same", "data-pass": pass.name, onclick: () => showPass(number) },
      element("span", { class: "name" }, pass.name),
      element("span", { class: "delta" }, pass.edits.length ? `${added >= 0 ? "+" : ""}${added}` : ""),
      element("span", { class: "ms" }, `${pass.ms.toFixed(1)} ms`)));
  });
  const first = data.passes.findIndex((pass) => pass.edits.length);
  if (first >= 0) showPass(first);
}

// ---- layouts --------------------------------------------------------------------------------

// The coordinates of a register of a lane of a warp: the XOR of the bases of the bits that are 1.
function layoutApply(layout, register, lane, warp) {
  const at = layout.shape.map(() => 0);
  for (const [bases, number] of [[layout.register, register], [layout.lane, lane], [layout.warp, warp]]) {
    bases.forEach((basis, bit) => { if (number >> bit & 1) basis.forEach((part, dim) => { at[dim] ^= part; }); });
  }
  return at;
}

function owners(layout) {
  const found = new Map();
  for (let warp = 0; warp < 1 << layout.warp.length; warp++) {
    for (let lane = 0; lane < 1 << layout.lane.length; lane++) {
      for (let register = 0; register < 1 << layout.register.length; register++) {
        const key = layoutApply(layout, register, lane, warp).join(",");
        if (!found.has(key)) found.set(key, []);
        found.get(key).push({ register, lane, warp });
      }
    }
  }
  return found;
}

const SVG = "http://www.w3.org/2000/svg";
const MOST_CELLS = 32;
const NAMED = 4;

function svg(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function layoutGrid(layout, details) {
  const [height, width] = layout.shape.length > 1 ? layout.shape.slice(-2) : [1, layout.shape[0] ?? 1];
  const rows = Math.min(height, MOST_CELLS);
  const columns = Math.min(width, MOST_CELLS);
  const size = 24;
  const picture = svg("svg", { width: columns * size, height: rows * size, class: "grid" });
  const found = owners(layout);
  const cells = [];
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const at = layout.shape.length > 1 ? [...layout.shape.slice(0, -2).map(() => 0), i, j] : layout.shape.length ? [j] : [];
      const all = found.get(at.join(",")) ?? [];
      const { register = 0, lane = 0, warp = 0 } = all[0] ?? {};
      const cell = svg("rect", { x: j * size, y: i * size, width: size, height: size, class: "cell",
        fill: `hsl(${(lane * 360 / 32 + 20 * warp) % 360} ${45 + 8 * (warp % 4)}% ${72 - 5 * (warp % 8)}%)` });
      cell.dataset.lane = lane; cell.dataset.warp = warp; cell.dataset.register = register;
      const title = svg("title", {});
      title.textContent = `element (${at.join(", ")}): ` + all.slice(0, 4).map((o) => `register ${o.register} of lane ${o.lane} of warp ${o.warp}`).join("; ") + (all.length > 4 ? `; ${all.length} copies` : "");
      cell.append(title);
      cell.addEventListener("click", () => {
        cells.forEach((other) => other.classList.toggle("on", other.dataset.lane === cell.dataset.lane && other.dataset.warp === cell.dataset.warp));
        details.textContent = `${title.textContent}. Outlined: all elements of lane ${lane} of warp ${warp}.`;
      });
      cells.push(cell);
      const label = svg("text", { x: (j + .5) * size, y: (i + .65) * size });
      label.textContent = lane;
      picture.append(cell, label);
    }
  }
  return picture;
}

function layoutsSection() {
  const layouts = explained?.layouts ?? [];
  if (!layouts.length) return false;
  const choice = element("select", { id: "layout" }, ...layouts.map((layout, number) =>
    element("option", { value: number }, `${layout.tile}: ${layout.values.slice(0, NAMED).join(", ")}` +
      (layout.values.length > NAMED ? ` and ${layout.values.length - NAMED} more` : ""))));
  const box = element("div", {});
  const details = element("p", { class: "hint" });
  const draw = () => {
    const layout = layouts[Number(choice.value)];
    const text = (name) => `${name}=${layout[name].map((basis) => `(${basis.join(",")})`).join("") || "none"}`;
    details.textContent = "Hover a cell for its register, lane and warp; click it to see all elements of its lane.";
    const cut = layout.shape.some((size) => size > MOST_CELLS) ? ` (the first ${MOST_CELLS} of each dimension)` : "";
    box.replaceChildren(element("p", {}, element("code", {}, `${text("register")} ${text("lane")} ${text("warp")}${cut}`)), layoutGrid(layout, details), details,
      element("p", { class: "hint" }, `Tiles with this layout: ${layout.values.join(", ")}`));
  };
  choice.addEventListener("change", draw);
  $("layouts").append(element("p", { class: "hint" }, "Which thread holds which element of a tile. Rows of the tile run down, columns to the right. Each cell shows its lane; shades are warps."), choice, box);
  draw();
  return true;
}

// ---- shared memory --------------------------------------------------------------------------

const BANKS = 32;

// For each group of lanes served together, by bank, the words that lanes touch.
function banksOf({ addresses, bytes }) {
  const together = Math.min(32, 128 / bytes);
  const groups = [];
  for (let start = 0; start < addresses.length; start += together) {
    const banks = Array.from({ length: BANKS }, () => new Map());
    addresses.slice(start, start + together).forEach((address, index) => {
      for (let word = address >> 2; word < (address + bytes + 3) >> 2; word++) {
        const words = banks[word % BANKS];
        if (!words.has(word)) words.set(word, []);
        words.get(word).push(start + index);
      }
    });
    groups.push(banks);
  }
  return groups;
}

const degreeOf = (access) => Math.max(...banksOf(access).flatMap((banks) => banks.map((words) => words.size)));

function bankTable(access) {
  const head = element("tr", {}, element("th", {}, "lanes"), ...Array.from({ length: BANKS }, (_, bank) => element("th", {}, String(bank))));
  const together = Math.min(32, 128 / access.bytes);
  const body = banksOf(access).map((banks, group) => element("tr", {},
    element("th", {}, `${group * together}-${(group + 1) * together - 1}`),
    ...banks.map((words) => element("td", {
      class: words.size > 1 ? "clash" : "",
      title: [...words].map(([word, lanes]) => `word ${word}: lane ${lanes.join(", ")}`).join("\n"),
    }, [...words.values()].flat().slice(0, 8).join(" ") + ([...words.values()].flat().length > 8 ? "..." : "")))));
  const title = element("h3", {}, `${access.what}, line ${access.line}: the lanes that access each bank`);
  return element("div", {}, title, element("table", { class: "banks" }, head, ...body));
}

function sharedSection() {
  const accesses = explained?.accesses ?? [];
  if (!accesses.length) return false;
  const box = element("div", {});
  const rows = accesses.map((access) => element("tr", {},
    element("td", {}, element("button", { class: "link", onclick: () => box.replaceChildren(bankTable(access)) }, `${access.what}, line ${access.line}`)),
    element("td", { class: "code" }, access.how), element("td", {}, `${access.bytes} B`),
    element("td", { class: access.degree > 1 ? "why" : "" }, access.degree > 1 ? `${access.degree}-way conflicts` : "none")));
  $("shared").append(element("p", { class: "hint" }, "Accesses of a warp to shared memory. Its 32 banks serve one word each at a time; lanes with different words in one bank (red) wait for each other."),
    element("table", {}, element("tr", {}, ...["access", "instruction", "per lane", "bank conflicts"].map((t) => element("th", {}, t))), ...rows), box);
  box.replaceChildren(bankTable(accesses.reduce((worst, each) => each.degree > worst.degree ? each : worst)));
  return true;
}

// ---- tabs -----------------------------------------------------------------------------------

const TABS = [["code", "Code"], ["why", "Why"], ["passes", "Passes"], ["layouts", "Layouts"],
  ["shared", "Shared memory"], ["schedule", "Schedule"], ["roofline", "Roofline"]];

function show(name) {
  for (const [id] of TABS) $(id).hidden = id !== name;
  for (const button of $("tabs").children) button.setAttribute("aria-selected", String(button.dataset.tab === name));
}

function roofline() {
  const bound = explained?.bound;
  if (!bound) return $("roofline").append(element("p", { class: "hint" }, "Give the sizes of a launch for its work and its limits: --size N=4096 --grid 64, or inspect(sizes=, grid=)."));
  const si = (value, unit) => {
    for (const [prefix, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
      if (value >= size) return `${(value / size).toFixed(2)} ${prefix}${unit}`;
    }
    return `${value.toFixed(0)} ${unit}`;
  };
  const us = (seconds) => `${(seconds * 1e6).toFixed(1)} us`;
  const facts = [["device", bound.device], ["work of dots", si(bound.product_flops, "FLOP")], ["other work", si(bound.other_flops, "FLOP")],
    ["requested", si(bound.requested, "B")], ["without repeated loads", si(bound.distinct, "B")], ["FLOPs per byte", bound.intensity.toFixed(2)],
    ["arithmetic at peak", us(bound.flop_seconds)], ["memory at peak", us(bound.byte_seconds)], ["limited by", bound.limit],
    ["measured", data.seconds ? us(data.seconds) : "no time given"]];
  return $("roofline").append(element("table", {}, ...facts.map(([name, value]) => element("tr", {}, element("th", {}, name), element("td", {}, value)))));
}

function start() {
  $("name").textContent = data.kernel;
  $("facts").textContent = data.summary.join("; ");
  if (data.error) {
    $("error").hidden = false;
    $("error").append(element("h2", {}, "This kernel does not compile"), element("pre", { class: "error" }, data.error));
  }
  sourcePane();
  data.panes.forEach(stagePane);
  chips();
  whySection();
  passesSection();
  const has = { code: data.panes.length > 0, why: explained, passes: data.passes.length, layouts: layoutsSection(), shared: sharedSection(),
    schedule: explained?.schedules.length, roofline: explained };
  if (explained) roofline();
  for (const [id, title] of TABS.filter(([id]) => has[id])) {
    $("tabs").append(element("button", { "data-tab": id, onclick: () => show(id) }, title));
  }
  show(data.panes.length ? "code" : "none");
  const line = data.chains.flat().map(keyOf).find((key) => explained && rowsOf(`${data.files[Number(key.split(":")[0])].path}:${key.split(":")[1]}`).length);
  if (line) select(line, "none");
}

start();
window.inspector = { select, counterparts, layoutApply, banksOf, degreeOf, data, texts };
