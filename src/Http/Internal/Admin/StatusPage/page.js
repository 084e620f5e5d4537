'use strict';

const charts = [
  new Chart('chart-requests', 'Requests', [
    { name: 'a second', key: 'rate', tone: 'a' },
  ], { scale: linear(1), format: rate }),
  new Chart('chart-latency', 'Latency', [
    { name: 'p50', key: 'p50', tone: 'b' },
    { name: 'p90', key: 'p90', tone: 'a' },
    { name: 'p99', key: 'p99', tone: 'c' },
  ], { scale: logarithmic(0.0001, 0.1), format: duration, say: latency }),
  new Chart('chart-answers', 'Answers by status', [
    { name: '2xx', key: 's2', tone: 'a' },
    { name: '3xx', key: 's3', tone: 'calm' },
    { name: '4xx', key: 's4', tone: 'warn' },
    { name: '5xx', key: 's5', tone: 'bad' },
  ], { scale: linear(1), format: rate, stacked: true }),
  new Chart('chart-connections', 'Connections', [
    { name: 'open', key: 'open', tone: 'a' },
    { name: 'requests in flight', key: 'inFlight', tone: 'b' },
  ], { scale: linear(10), format: whole }),
  new Chart('chart-lag', 'Event loop lag', [
    { name: 'now', key: 'lag', tone: 'a' },
    { name: 'highest in a minute', key: 'maxLag', tone: 'calm' },
  ], { scale: linear(0.01), format: duration }),
  new Chart('chart-memory', 'Memory', [
    { name: 'of all processes', key: 'memory', tone: 'a' },
  ], { scale: linear(2 ** 20, 2 ** 20), format: bytes }),
];
$('charts').append(...charts.map(chart => chart.element));

// Facts, pools, routes and processes.

const facts = new Map(['Uptime', 'Processes', 'Requests', 'Server errors', 'Refused', 'Abandoned'].map(name => {
  const value = make('dd', '', '–');
  value.id = `fact-${name.toLowerCase().replace(' ', '-')}`;
  $('facts').append(make('div', '', make('dt', '', name), value));

  return [name, value];
}));

const renderFacts = snapshot => {
  const now = snapshot.processes;
  write(facts.get('Uptime'), now.length > 0 ? since(snapshot.time - Math.min(...now.map(process => process.started))) : '–');
  write(facts.get('Processes'), whole(now.length));
  write(facts.get('Requests'), whole(answers(snapshot, 0, 1000)));
  write(facts.get('Server errors'), whole(answers(snapshot, 500, 600)));
  facts.get('Server errors').className = answers(snapshot, 500, 600) > 0 ? 'bad' : '';
  write(facts.get('Refused'), whole(sum(Object.values(snapshot.refused))));
  write(facts.get('Abandoned'), whole(snapshot.abandoned));
};

const pools = new Map();
const label = name => name.replace(/_(total|seconds|bytes)\b/g, '').replace('_le_', ' ≤ ').replaceAll('_', ' ');
const figure = (name, value) => /_seconds(?!_le_)/.test(name) ? duration(value)
  : /_bytes(?!_le_)/.test(name) ? bytes(value)
    : count(value);

const renderPool = (name, figures, before, seconds) => {
  if (!pools.has(name)) {
    const parts = { name, use: make('span', 'when'), bar: make('i'), list: make('dl'), max: 1 };
    parts.plot = new Plot([{ key: ({ pools }) => pools.get(name), tone: 'a' }], { scale: () => ({ y: amount => HEIGHT * (1 - amount / parts.max), ticks: [] }) });
    parts.meter = make('div', 'meter', parts.bar);
    parts.element = make('article', 'card pool', make('div', 'head', make('h3', 'title', name), parts.use), parts.meter, parts.plot.element, parts.list);
    pools.set(name, parts);
    $('pools').querySelector('.cards').append(parts.element);
  }
  const parts = pools.get(name);
  const { in_use: used, max, waiting } = figures;
  const isMeasured = used !== undefined && max > 0;
  parts.meter.hidden = parts.plot.element.hidden = !isMeasured;
  parts.max = isMeasured ? max : parts.max;
  write(parts.use, isMeasured ? `${whole(used)} of ${whole(max)} in use` : '');
  parts.bar.style.width = isMeasured ? `${Math.min(100, 100 * used / max)}%` : '0';
  parts.meter.classList.toggle('full', isMeasured && used >= max && waiting > 0);
  const grows = ([key]) => key.endsWith('_total');
  const rest = Object.entries(figures).filter(([key]) => !isMeasured || (key !== 'in_use' && key !== 'max')).sort((one, other) => grows(one) - grows(other));
  parts.list.replaceChildren(...rest.flatMap(([key, value]) => {
    const speed = grows([key]) && seconds > 0 ? grown(value, before?.[key] ?? 0) / seconds : 0;

    return [make('dt', '', label(key)), make('dd', 'when', speed > 0 ? rate(speed) : ''), make('dd', '', figure(key, value))];
  }));
};

const renderPools = (now, before) => {
  const past = new Map(before?.pools);
  $('pools').hidden = now.pools.length === 0;
  now.pools.forEach(([name, figures]) => renderPool(name, figures, past.get(name), before === null ? 0 : now.time - before.time));
  const names = new Set(now.pools.map(([name]) => name));
  pools.forEach(({ element }, name) => { element.hidden = !names.has(name); });
};

const cell = (content, className = '') => make('td', className, content);
const rows = (id, lines) => {
  $(id).hidden = lines.length === 0;
  $(id).querySelector('tbody').replaceChildren(...lines.map(([head, ...cells]) => {
    const th = make('th', '', head);
    th.scope = 'row';

    return make('tr', '', th, ...cells);
  }));
};

const renderRoutes = (now, before) => {
  const past = new Map(before?.routes);
  const routes = [...now.routes].sort(([, a], [, b]) => b[0] - a[0]);
  rows('routes', routes.slice(0, ROUTES).map(([name, [requests, seconds, errors]]) => [
    name,
    cell(whole(requests)),
    cell(before === null ? '–' : rate(grown(requests, past.get(name)?.[0] ?? 0) / (now.time - before.time))),
    cell(requests > 0 ? duration(seconds / requests) : '–'),
    cell(whole(errors), errors > 0 ? 'bad' : 'none'),
  ]));
  const note = $('routes').querySelector('.note');
  note.hidden = routes.length <= ROUTES;
  write(note, `and ${routes.length - ROUTES} more with fewer requests`);
};

const renderProcesses = (now, before) => {
  const past = new Map(before?.processes.map(process => [`${process.pid} ${process.started}`, process.answered]));
  rows('processes', now.processes.map(process => [
    process.stopping ? `${process.pid} (draining)` : `${process.pid}`,
    cell(since(now.time - process.started)),
    cell(whole(process.answered)),
    cell(before === null ? '–' : rate(grown(process.answered, past.get(`${process.pid} ${process.started}`) ?? 0) / (now.time - before.time))),
    cell(whole(process.inFlight)),
    cell(whole(process.connections)),
    cell(duration(process.lag)),
    cell(duration(process.maxLag)),
    cell(bytes(process.memory)),
  ]));
};

// Received snapshots, and the state of the connection.

let points = [];
let last = null;
let pointed = null; // seconds from the pointer in a chart to the last point; null without a pointer

const render = () => {
  if (points.length === 0) {
    return;
  }
  const at = points.at(-1).time - (pointed ?? 0);
  const marked = pointed === null ? null : points.reduce((best, point) => Math.abs(point.time - at) < Math.abs(best.time - at) ? point : best);
  charts.forEach(chart => chart.render(points, marked));
  pools.forEach(({ name, plot }) => plot.render(points, marked, `${name}: in use`));
};

const pointAt = ago => {
  pointed = ago;
  render();
};

const take = snapshot => {
  const before = last !== null && snapshot.time > last.time ? last : null;
  bounds = snapshot.bounds;
  points = [...points.filter(({ time }) => time > snapshot.time - LONGEST && time < snapshot.time), compare(snapshot, before)];
  span = Math.min(LONGEST, Math.max(SHORTEST, snapshot.time - points[0].time));
  renderFacts(snapshot);
  renderPools(snapshot, before);
  renderRoutes(snapshot, before);
  renderProcesses(snapshot, before);
  render();
  last = snapshot;
};

const say = (state, text) => {
  $('state').dataset.state = state;
  write($('state'), text);
  $('main').classList.toggle('stale', state === 'lost');
  document.title = state === 'live' ? `Spindle · ${location.host}` : `${text} · Spindle`;
};

let heard = Date.now();

const connect = () => {
  const events = new EventSource('events');
  events.onmessage = ({ data }) => {
    heard = Date.now();
    const snapshot = JSON.parse(data);
    take(snapshot);
    if (snapshot.ready) {
      say('live', 'Live');
    } else if (snapshot.processes.length > 0 || $('state').dataset.state === 'draining') {
      say('draining', 'Draining');
    } else {
      say('waiting', 'Starting');
    }
  };
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) { // after an HTTP error, the browser does not reconnect by itself
      setTimeout(connect, 2000);
    }
  };
};

setInterval(() => {
  if (Date.now() - heard > GAP * 1000) {
    say('lost', last === null ? 'Not connected' : `Disconnected since ${new Date(heard).toLocaleTimeString('en-GB')}`);
  }
}, 500);

write($('host'), location.host);
connect();
