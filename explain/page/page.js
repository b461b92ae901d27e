// Draws the charts of the page from its JSON and filters it. Every chart is a
// figure with a table beside it; names only ever become text, never markup.
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const filter = {source: '', engine: ''};
const charts = new Map(); // figure -> {chart, readings, at}

// number prints about four figures, as the tables do.
const number = v => {
  if (Math.abs(v) < 5e-7) return '0';
  const digits = Math.max(0, Math.min(9, 3 - Math.floor(Math.log10(Math.abs(v)))));
  return String(Number(v.toFixed(digits)));
};
const signed = v => (v > 0 ? '+' : '') + number(v);
const percent = v => (100 * v).toFixed(1) + ' %';
const nameOf = s => s.cluster + '/' + s.class;

const colours = () => {
  const css = getComputedStyle(document.documentElement);
  const get = name => css.getPropertyValue(name).trim();
  return {text: get('--text'), faint: get('--faint'), line: get('--line'), surface: get('--surface'),
    low: get('--low'), high: get('--high'), warn: get('--warn'), grey: get('--grey'), parts: get('--parts').split(/\s+/)};
};

// sources and engines as the filters leave them.
const touches = (s, engine) => [s.weight, s.alternative, s.fallback].some(list => (list || []).some(x => x.engine === engine));
const sources = () => (data.snapshot.source || []).filter(s => data.shown.sources.includes(nameOf(s)) &&
  (!filter.source || nameOf(s) === filter.source) && (!filter.engine || touches(s, filter.engine)));
const engines = list => data.snapshot.engine.filter(e => data.shown.engines.includes(e.name) &&
  (!filter.engine || e.name === filter.engine) && (!filter.source || list.some(s => touches(s, e.name))));
const wanted = x => (!filter.source || !x.source || x.source === filter.source) && (!filter.engine || !x.engine || x.engine === filter.engine);

// Every builder returns {option, readings, height, width}: what ECharts draws,
// and per datum {series, index, text} what the figure reads out.
const builders = {heat, flows, curve, costs, waterfall, moves, losses, values, knobs, change, load, groups};

function grid(c, left) {
  return {left: 8, right: 24, top: 40, bottom: 8, containLabel: true, ...left};
}

function axis(c, extra) {
  return {axisLabel: {color: c.text, hideOverlap: true, ...extra?.axisLabel}, axisLine: {lineStyle: {color: c.line}}, splitLine: {lineStyle: {color: c.line}},
    nameTextStyle: {color: c.faint}, ...Object.fromEntries(Object.entries(extra || {}).filter(([k]) => k !== 'axisLabel'))};
}

// names are labels on an axis of categories; long ones wrap.
const names = (c, list, extra) => axis(c, {type: 'category', data: list, axisTick: {show: false}, splitLine: {show: false},
  ...extra, axisLabel: {interval: 0, width: narrow() ? 84 : 170, overflow: 'break', lineHeight: 13, ...extra?.axisLabel}});
const narrow = () => window.innerWidth < 600;

function legend(c) {
  return {type: 'scroll', top: 4, left: 0, textStyle: {color: c.text}, pageTextStyle: {color: c.text}, pageIconColor: c.text, itemWidth: 14, itemHeight: 10};
}

function heat(c) {
  const rows = sources(), columns = engines(rows);
  const cells = [], readings = [];
  rows.forEach((s, y) => columns.forEach((e, x) => {
    const w = (s.weight || []).find(w => w.engine === e.name);
    const a = (s.alternative || []).find(a => a.engine === e.name);
    let label = '', text = nameOf(s) + ' on ' + e.name + ': ';
    if (w) {
      label = percent(w.fraction);
      text += number(w.rps) + ' req/s, ' + label + '; network ' + number(w.cost_ms.net) + ' ms, one more costs ' + number(w.cost_ms.total) + ' ms. ' + w.reason;
    } else if (a) {
      label = '+' + number(a.loses_by_ms) + ' ms';
      text += 'not used. ' + a.reason;
    } else {
      text += 'may not be used, or is among the dearest';
    }
    cells.push({value: [x, y, w ? w.fraction : 0], name: label});
    readings.push({series: 0, index: cells.length - 1, text});
  }));
  const labels = columns.length <= 16, rotated = columns.length > 6 || narrow();
  return {readings, height: (rotated ? 170 : 110) + (rows.length > 20 ? 22 : 34) * rows.length, width: (narrow() ? 100 : 180) + (labels ? narrow() ? 52 : 68 : 22) * columns.length, option: {
    grid: grid(c, {top: 12, bottom: 56}),
    xAxis: names(c, columns.map(e => e.name), {axisLabel: rotated ? {rotate: 45, width: undefined, overflow: 'none'} : {width: 90}}),
    yAxis: names(c, rows.map(nameOf), {inverse: true}),
    visualMap: {min: 0, max: 1, calculable: false, orient: 'horizontal', left: 0, bottom: 0, itemHeight: 120, itemWidth: 12,
      text: ['all requests', 'none'], textStyle: {color: c.text}, inRange: {color: [c.low, c.high]}},
    series: [{type: 'heatmap', data: cells, itemStyle: {borderColor: c.surface, borderWidth: 2},
      label: {show: labels, fontSize: narrow() ? 10 : 11, formatter: p => p.name, color: c.text}, emphasis: {itemStyle: {borderColor: c.text}}}],
  }};
}

function flows(c) {
  const rows = sources(), nodes = [], links = [], readings = [], seen = new Set();
  const node = (id, label, side) => {
    if (!seen.has(id)) {
      seen.add(id);
      nodes.push({name: id, shown: label, depth: side, itemStyle: {color: side ? c.parts[1] : c.parts[0]}, label: {position: side ? 'left' : 'right'}});
    }
    return id;
  };
  rows.forEach(s => (s.weight || []).forEach(w => {
    if (!(w.rps > 0) || filter.engine && w.engine !== filter.engine) return;
    links.push({source: node('s' + nameOf(s), nameOf(s), 0), target: node('e' + w.engine, w.engine, 1), value: w.rps});
    readings.push({series: 0, index: links.length - 1, type: 'edge',
      text: nameOf(s) + ' sends ' + number(w.rps) + ' req/s to ' + w.engine + ', ' + number(w.cost_ms.net) + ' ms of network away'});
  }));
  return {readings, height: Math.max(160, (nodes.length > 24 ? 24 : 34) * nodes.length), option: {series: [{
    type: 'sankey', data: nodes, links, left: 4, right: 4, top: 8, bottom: 8, nodeGap: 14, nodeWidth: 12, draggable: false, layoutIterations: 24,
    label: {color: c.text, formatter: p => p.data.shown, fontSize: 12}, lineStyle: {color: 'source', opacity: 0.3}, emphasis: {focus: 'adjacency', lineStyle: {opacity: 0.7}},
  }]}};
}

function curve(c, figure) {
  const name = figure.dataset.engine, x = data.curves[name];
  const readings = [
    {series: 1, index: 0, text: name + ' at plan: ' + number(x.plan[0]) + ' req/s, ' + number(x.plan[1]) + ' ms; its limit is ' + number(x.limit_rps) + ' req/s'},
    ...x.points.map((p, i) => ({series: 0, index: i, text: name + ' at ' + number(p[0]) + ' req/s: ' + number(p[1]) + ' ms'})),
  ];
  return {readings, height: 220, option: {
    grid: grid(c, {top: 30, right: 36, bottom: 24}),
    xAxis: axis(c, {type: 'value', min: 0, max: x.points.at(-1)[0], name: 'req/s', nameLocation: 'middle', nameGap: 24, axisLabel: {formatter: number, showMaxLabel: false}}),
    yAxis: axis(c, {type: 'value', min: 0, name: 'ms', nameLocation: 'end', nameGap: 10, axisLabel: {formatter: number}}),
    series: [
      {type: 'line', data: x.points, showSymbol: false, lineStyle: {color: c.parts[0], width: 2}, itemStyle: {color: c.parts[0]},
        markLine: {symbol: 'none', silent: true, label: {formatter: 'limit', color: c.text, position: 'end', rotate: 0, distance: 2}, lineStyle: {color: c.warn, type: 'dashed'}, data: [{xAxis: x.limit_rps}]}},
      {type: 'scatter', data: [x.plan], symbolSize: 12, itemStyle: {color: c.parts[1], borderColor: c.text}, z: 5,
        label: {show: true, position: 'left', formatter: number(x.plan[1]) + ' ms', color: c.text}},
    ],
  }};
}

// parts of a marginal cost in the order of the tables.
const parts = [['network', 'net'], ['compute', 'base'], ['own delay', 'delay'], ['to others', 'externality'], ['kink', 'kink'], ['limit', 'limit'], ['shares and caps', 'share'], ['cache', 'cache']];
const pairsOf = s => [...(s.weight || []).map(w => ({...w, used: true})), ...(s.alternative || [])];
const sourceOf = figure => data.snapshot.source.find(s => nameOf(s) === figure.dataset.source);

function costs(c, figure) {
  const pairs = pairsOf(sourceOf(figure)), readings = [];
  const present = parts.filter(([, key]) => pairs.some(p => p.cost_ms[key]));
  pairs.forEach((p, i) => present.forEach(([label, key], j) => readings.push({series: j, index: i,
    text: p.engine + (p.used ? ' (used)' : ' (not used)') + ': ' + label + ' ' + number(p.cost_ms[key] || 0) + ' of ' + number(p.cost_ms.total) + ' ms'})));
  return {readings, height: 96 + 34 * pairs.length, option: {
    legend: legend(c), grid: grid(c), xAxis: axis(c, {type: 'value', axisLabel: {formatter: number}}),
    yAxis: names(c, pairs.map(p => p.engine + (p.used ? ' *' : '')), {inverse: true}),
    series: present.map(([label, key]) => ({name: label, type: 'bar', stack: 'cost', barMaxWidth: 20,
      itemStyle: {color: c.parts[parts.findIndex(p => p[1] === key)]}, data: pairs.map(p => p.cost_ms[key] || 0)})),
  }};
}

function waterfall(c, figure) {
  const pairs = pairsOf(sourceOf(figure));
  const pair = pairs.find(p => p.engine === figure.querySelector('select')?.value) || pairs[0];
  if (!pair) return {readings: [], height: 60, option: {}};
  const steps = parts.filter(([, key]) => pair.cost_ms[key]).map(([label, key]) => [label, pair.cost_ms[key]]);
  let sum = 0;
  const from = [], size = [], readings = [];
  for (const [label, v] of steps) {
    from.push(Math.min(sum, sum + v));
    size.push(Math.abs(v));
    sum += v;
    readings.push({series: 1, index: readings.length, text: pair.engine + ': ' + label + ' ' + signed(v) + ' ms, together ' + number(sum) + ' ms'});
  }
  from.push(0);
  size.push(pair.cost_ms.total);
  readings.push({series: 1, index: readings.length, text: pair.engine + ': one more request costs ' + number(pair.cost_ms.total) + ' ms'});
  return {readings, height: 270, option: {
    grid: grid(c, {top: 24}),
    xAxis: names(c, [...steps.map(s => s[0]), 'together'], {axisLabel: {interval: 0, width: 62, overflow: 'break', fontSize: 11}}),
    yAxis: axis(c, {type: 'value', axisLabel: {formatter: number}}),
    series: [
      {type: 'bar', stack: 'w', silent: true, itemStyle: {color: 'transparent'}, emphasis: {disabled: true}, data: from},
      {type: 'bar', stack: 'w', barMaxWidth: 56, data: size.map((v, i) => ({value: v, itemStyle: {color: i < steps.length ? c.parts[parts.findIndex(p => p[0] === steps[i][0])] : c.grey}})),
        label: {show: true, position: 'top', color: c.text, fontSize: 11, formatter: p => p.dataIndex < steps.length ? number(steps[p.dataIndex][1]) : number(pair.cost_ms.total)}},
    ],
  }};
}

// bars is a chart of horizontal bars, one series or several side by side.
function bars(c, labels, series, text) {
  const readings = [];
  labels.forEach((label, i) => readings.push({series: 0, index: i, text: text(i)}));
  return {readings, height: (series.length > 1 ? 80 : 48) + labels.length * (narrow() ? 44 : series.length > 1 ? 40 : 28), option: {
    legend: series.length > 1 ? legend(c) : undefined, grid: grid(c, {top: series.length > 1 ? 40 : 8, right: 56}),
    xAxis: axis(c, {type: 'value', axisLabel: {formatter: number}}), yAxis: names(c, labels, {inverse: true}),
    series: series.map((s, i) => ({name: s.name, type: 'bar', barMaxWidth: 18, itemStyle: {color: s.colour || c.parts[i]}, data: s.data,
      label: {show: true, position: 'right', color: c.text, fontSize: 11, formatter: p => s.label ? s.label(p.value) : number(p.value)}})),
  }};
}

const most = 24; // bars at most, the largest

function moves(c) {
  const list = (data.answers.what_if.moves || []).filter(wanted).slice(0, most);
  return bars(c, list.map(m => m.source + ' to ' + m.engine), [{name: 'change', data: list.map(m => m.then_rps - m.now_rps), label: signed}],
    i => list[i].source + ' to ' + list[i].engine + ': ' + number(list[i].now_rps) + ' now, ' + number(list[i].then_rps) + ' then, ' + signed(list[i].then_rps - list[i].now_rps) + ' req/s');
}

function losses(c) {
  const list = data.answers.n_1.losses.filter(l => !filter.engine || l.engines.includes(filter.engine)).slice(0, most);
  const atOnce = l => l.immediate.refused_rps + l.immediate.unrouted_rps;
  return bars(c, list.map(l => l.lost), [
    {name: 'not served at once', data: list.map(atOnce), colour: c.warn}, {name: 'not served by a new plan', data: list.map(l => l.shed_rps), colour: c.parts[0]},
  ], i => 'without ' + list[i].lost + ': ' + number(atOnce(list[i])) + ' req/s not served until a new plan, then ' + number(list[i].shed_rps) + '; mean latency ' + signed(list[i].rise_ms) + ' ms by the new plan');
}

function values(c) {
  const list = data.answers.value.values.filter(wanted).slice(0, most);
  if (list.some(v => v.serves_more_rps > 1e-6)) {
    return bars(c, list.map(v => v.engine), [{name: 'serves more', data: list.map(v => v.serves_more_rps)}],
      i => number(list[i].extra_rps) + ' req/s more at ' + list[i].engine + ' serves ' + number(list[i].serves_more_rps) + ' req/s more of what is shed now');
  }
  return bars(c, list.map(v => v.engine), [
    {name: 're-solved', data: list.map(v => v.saves_ms_rps)}, {name: 'at most', data: list.map(v => v.at_most_ms_rps), colour: c.grey},
  ], i => number(list[i].extra_rps) + ' req/s more at ' + list[i].engine + ' saves ' + number(list[i].saves_ms_rps) + ' ms x req/s, ' + number(list[i].saves_mean_ms) + ' ms of the mean latency');
}

function knobs(c) {
  const list = (data.answers.sensitivity.knobs || []).slice(0, most);
  return bars(c, list.map(k => k.knob), [{name: 'costs', data: list.map(k => k.costs_ms_rps)}],
    i => list[i].knob + ' costs ' + number(list[i].costs_ms_rps) + ' ms x req/s, ' + number(list[i].costs_mean_ms) + ' ms of the mean latency');
}

function change(c) {
  const list = (data.diff.sources || []).flatMap(s => s.moves || []).filter(wanted)
    .sort((a, b) => Math.abs(b.then_rps - b.now_rps) - Math.abs(a.then_rps - a.now_rps)).slice(0, most);
  return bars(c, list.map(m => m.source + ' to ' + m.engine), [{name: 'change', data: list.map(m => m.then_rps - m.now_rps), label: signed}],
    i => list[i].source + ' to ' + list[i].engine + ': ' + number(list[i].now_rps) + ' before, ' + number(list[i].then_rps) + ' after, ' + signed(list[i].then_rps - list[i].now_rps) + ' req/s');
}

function load(c) {
  const list = (data.diff.engines || []).filter(wanted).slice(0, most);
  return bars(c, list.map(e => e.engine), [{name: 'old', data: list.map(e => e.old_reference_rps), colour: c.grey}, {name: 'new', data: list.map(e => e.new_reference_rps)}],
    i => list[i].engine + ': ' + number(list[i].old_reference_rps) + ' before, ' + number(list[i].new_reference_rps) + ' after, limit ' + number(list[i].new_limit_rps) + ' reference req/s');
}

function groups(c) {
  const list = data.diff.attribution.groups || [];
  return bars(c, list.map(g => g.group), [{name: 'part', data: list.map(g => g.objective_ms_rps), label: signed}],
    i => list[i].group + ': ' + signed(list[i].objective_ms_rps) + ' ms x req/s, ' + signed(list[i].mean_latency_ms) + ' ms of the mean latency');
}

function draw(figure) {
  const plot = figure.querySelector('.plot');
  const built = builders[figure.dataset.kind](colours(), figure);
  plot.style.height = built.height + 'px';
  plot.style.minWidth = (built.width || 0) + 'px';
  const old = charts.get(figure);
  const chart = old ? old.chart : echarts.init(plot, null, {renderer: 'svg'});
  const state = {chart, readings: built.readings, at: -1};
  charts.set(figure, state);
  figure.classList.toggle('empty', built.readings.length === 0);
  chart.resize();
  chart.setOption({animation: false, textStyle: {fontFamily: 'system-ui, sans-serif'}, ...built.option}, true);
  if (old) return;
  const output = figure.querySelector('.reading');
  chart.on('mouseover', p => {
    const s = charts.get(figure);
    const r = s.readings.find(r => r.series === p.seriesIndex && r.index === p.dataIndex && (!r.type || r.type === p.dataType)) ||
      s.readings.find(r => !r.type && r.index === p.dataIndex && p.componentType === 'series');
    if (r) output.textContent = r.text;
  });
  figure.addEventListener('keydown', event => step(figure, event));
}

// step moves through the values of a figure and reads them.
function step(figure, event) {
  if (event.target !== figure) return;
  const s = charts.get(figure), n = s.readings.length;
  const to = {ArrowRight: s.at + 1, ArrowDown: s.at + 1, ArrowLeft: s.at - 1, ArrowUp: s.at - 1, Home: 0, End: n - 1}[event.key];
  if (to === undefined || n === 0) return;
  event.preventDefault();
  const was = s.readings[s.at];
  if (was) s.chart.dispatchAction({type: 'downplay', seriesIndex: was.series, dataIndex: was.index, dataType: was.type});
  s.at = (to + n) % n;
  const now = s.readings[s.at];
  s.chart.dispatchAction({type: 'highlight', seriesIndex: now.series, dataIndex: now.index, dataType: now.type});
  figure.querySelector('.reading').textContent = now.text;
}

// Figures are drawn as they come into view: a page may have hundreds.
const seen = new IntersectionObserver(list => list.forEach(entry => {
  if (entry.isIntersecting && !charts.has(entry.target)) draw(entry.target);
}), {rootMargin: '400px'});

const redraw = () => charts.forEach((_, figure) => {
  figure.classList.remove('empty'); // with other filters it may have values again
  if (figure.offsetParent) draw(figure);
});

function drawAll() {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  document.querySelectorAll('figure.chart').forEach(figure => { if (figure.offsetParent) draw(figure); });
}

function apply() {
  let hidden = 0;
  const show = (element, shown) => { element.hidden = !shown; };
  document.querySelectorAll('article').forEach(a => {
    const shown = (!filter.source || a.dataset.source === filter.source) && (!filter.engine || JSON.parse(a.dataset.engines).includes(filter.engine));
    show(a, shown);
    if (shown && filter.source) a.querySelector('details').open = true;
  });
  document.querySelectorAll('section > figure[data-kind=curve]').forEach(f => show(f, engines(sources()).some(e => e.name === f.dataset.engine)));
  document.querySelectorAll('section > .scroll tbody tr').forEach(tr => {
    const shown = wanted(tr.dataset);
    show(tr, shown);
    hidden += shown ? 0 : 1;
  });
  document.getElementById('filter-state').textContent = filter.source || filter.engine ? hidden + ' rows of tables are filtered out' : '';
  redraw();
}

for (const kind of ['source', 'engine']) {
  document.getElementById('filter-' + kind)?.addEventListener('change', event => {
    filter[kind] = event.target.value;
    apply();
  });
}
document.getElementById('filters').hidden = false;
document.querySelectorAll('figure[data-kind=waterfall]').forEach(figure => {
  const select = document.createElement('select');
  select.setAttribute('aria-label', 'Engine');
  for (const p of pairsOf(sourceOf(figure))) select.append(new Option(p.engine + (p.used ? ' (used)' : ' (not used)'), p.engine));
  select.addEventListener('change', () => draw(figure));
  figure.querySelector('figcaption').append(' on ', select);
});
document.querySelectorAll('figure.chart').forEach(figure => seen.observe(figure));
let resizing;
window.addEventListener('resize', () => { clearTimeout(resizing); resizing = setTimeout(redraw, 100); });
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
// Paper is light and shows all, whatever the screen is.
const printing = on => document.documentElement.classList.toggle('printing', on);
window.addEventListener('beforeprint', () => { printing(true); drawAll(); });
window.addEventListener('afterprint', () => { printing(false); redraw(); });
document.querySelectorAll('details').forEach(d => d.addEventListener('toggle', redraw));
window.irb = {charts, drawAll}; // for tests and for a look at the numbers
})();
