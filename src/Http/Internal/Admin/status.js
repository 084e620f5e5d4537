'use strict';
(() => {
  const WINDOW = 120; // seconds that are drawn
  const GAP = 4; // seconds without a snapshot after which a line is broken, and the server counts as gone
  const WIDTH = 360;
  const HEIGHT = 100;
  const ROUTES = 50; // that are listed

  const $ = id => document.getElementById(id);

  /** Content is always text, never HTML: names of routes and pools may be anything. */
  const make = (tag, className = '', ...content) => {
    const element = document.createElement(tag);
    element.className = className;
    element.append(...content);

    return element;
  };

  const draw = (tag, className, attributes = {}) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    element.setAttribute('class', className);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));

    return element;
  };

  const write = (element, content) => {
    if (element.textContent !== content) {
      element.textContent = content;
    }
  };

  // Figures for the eye.

  const round = (value, digits) => value.toLocaleString('en', { maximumFractionDigits: digits });
  const count = value => value >= 1e9 ? `${round(value / 1e9, 2)} G` : round(value, value < 10 ? 1 : 0);
  const whole = value => value >= 1e9 ? count(value) : round(value, 0);
  const rate = value => `${count(value)} /s`;
  const bytes = value => value < 2 ** 30 ? `${round(value / 2 ** 20, value < 2 ** 24 ? 1 : 0)} MiB` : `${round(value / 2 ** 30, 2)} GiB`;
  const duration = value => {
    if (value >= 9.995) {
      return `${round(value, 0)} s`;
    }
    const [scaled, unit] = value >= 0.9995 ? [value, 's'] : [value * 1e3, 'ms'];

    return `${round(scaled, scaled < 1 ? 2 : scaled < 10 ? 1 : 0)} ${unit}`;
  };
  const since = value => {
    const [days, hours, minutes, seconds] = [value / 86400, value / 3600 % 24, value / 60 % 60, value % 60].map(Math.floor);
    if (days > 0) {
      return `${days} d ${hours} h`;
    }
    if (hours > 0) {
      return `${hours} h ${minutes} min`;
    }

    return minutes > 0 ? `${minutes} min ${seconds} s` : `${seconds} s`;
  };
  const orNone = format => value => value === null || value === undefined ? '–' : format(value);

  // From two snapshots to what happened between them.

  const sum = values => values.reduce((total, value) => total + value, 0);
  const grown = (now, before) => now >= before ? now - before : now; // it falls when all is started again
  const answers = (snapshot, from, to) => sum(Object.entries(snapshot.answered).filter(([status]) => status >= from && status < to).map(([, value]) => value));

  /** The duration that this share of the answers did not exceed, by the histogram. Null when there were none. */
  const quantile = (share, counts, bounds) => {
    const all = sum(counts);
    let rank = share * all;
    for (let bucket = 0; all > 0 && bucket < counts.length; ++bucket) {
      if (rank <= counts[bucket]) {
        const from = bucket === 0 ? 0 : bounds[bucket - 1];

        return bucket === bounds.length ? from : from + (bounds[bucket] - from) * rank / counts[bucket];
      }
      rank -= counts[bucket];
    }

    return null;
  };

  const compare = (now, before) => {
    const point = {
      time: now.time,
      open: now.connections,
      inFlight: now.inFlight,
      lag: Math.max(0, ...now.processes.map(process => process.lag)),
      memory: sum(now.processes.map(process => process.memory)),
      pools: new Map(now.pools.map(([name, figures]) => [name, figures.in_use])),
      follows: before !== null && now.time - before.time < GAP,
    };
    if (before === null || now.time <= before.time) {
      return point;
    }
    const seconds = now.time - before.time;
    const classes = [2, 3, 4, 5].map(digit => grown(answers(now, digit * 100, digit * 100 + 100), answers(before, digit * 100, digit * 100 + 100)) / seconds);
    const counts = now.durations.map((value, bucket) => grown(value, before.durations[bucket] ?? 0));

    return {
      ...point,
      rate: sum(classes),
      s2: classes[0], s3: classes[1], s4: classes[2], s5: classes[3],
      p50: quantile(0.5, counts, now.bounds),
      p90: quantile(0.9, counts, now.bounds),
      p99: quantile(0.99, counts, now.bounds),
    };
  };

  // Charts.

  /** 1, 2 or 5 times a power of ten; of a power of two where it is about bytes. */
  const ceiling = (value, unit) => {
    const power = unit * 10 ** Math.floor(Math.log10(value / unit));

    return power * [1, 2, 5, 10].find(step => step * power >= value * 0.999);
  };

  class Plot {
    constructor(series, format, { least, unit = 1, stacked = false, ticks = true }) {
      Object.assign(this, { series, format, least, unit, stacked, shown: ticks ? [0, 0.5] : [] });
      this.svg = draw('svg', '', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' });
      this.svg.append(...[0, 0.5, 1].slice(ticks ? 0 : 2).map(part => draw('path', 'grid', { d: `M0 ${HEIGHT * part}H${WIDTH}` })));
      this.paths = series.map(({ tone }) => {
        const fill = draw('path', `${stacked ? 'bars' : 'area'} tone-${tone}`);
        const line = draw('path', `line tone-${tone}`);
        this.svg.append(...series.length === 1 || stacked ? [fill] : [], ...stacked ? [] : [line]);

        return [fill, line];
      });
      this.cursor = draw('path', 'cursor');
      this.svg.append(this.cursor);
      this.ticks = this.shown.map(part => {
        const tick = make('span', 'tick');
        tick.style.top = `${part * 100}%`;

        return tick;
      });
      this.element = make('div', 'plot', this.svg, ...this.ticks);
      this.element.addEventListener('pointermove', event => {
        const { left, width } = this.element.getBoundingClientRect();
        pointed = (1 - (event.clientX - left) / width) * WINDOW;
        render();
      });
      this.element.addEventListener('pointerleave', () => {
        pointed = null;
        render();
      });
    }

    render(points, marked, label) {
      const value = ({ key }, point) => typeof key === 'string' ? point[key] : key(point);
      const height = point => this.stacked
        ? sum(this.series.map(one => value(one, point) ?? 0))
        : Math.max(0, ...this.series.map(one => value(one, point) ?? 0));
      const top = Math.max(this.least, ceiling(Math.max(this.least, ...points.map(height)), this.unit));
      const x = point => WIDTH * (1 - (points.at(-1).time - point.time) / WINDOW);
      const y = amount => HEIGHT * (1 - amount / top);
      const bases = new Map();
      this.series.forEach((one, index) => {
        const [fill, line] = this.paths[index];
        this.stacked ? fill.setAttribute('d', this.bars(points, one, bases, x, y, value)) : this.lines(points, one, fill, line, x, y, value);
      });
      this.ticks.forEach((tick, index) => write(tick, this.format(top * (1 - this.shown[index]))));
      this.cursor.setAttribute('d', marked === null ? '' : `M${x(marked).toFixed(1)} 0V${HEIGHT}`);
      this.svg.setAttribute('aria-label', label);
    }

    lines(points, one, fill, line, x, y, value) {
      let [path, area, start, end] = ['', '', 0, 0];
      const close = () => end > start ? `L${end.toFixed(1)} ${HEIGHT}L${start.toFixed(1)} ${HEIGHT}Z` : '';
      let drawn = false;
      points.forEach(point => {
        const amount = value(one, point);
        const at = x(point);
        if (amount === null || amount === undefined) {
          drawn = false;

          return;
        }
        const step = `${drawn && point.follows ? 'L' : 'M'}${at.toFixed(1)} ${y(amount).toFixed(1)}`;
        if (!drawn || !point.follows) {
          area += close();
          start = at;
          path += `${step}h0`; // a dot, if nothing follows
        } else {
          path += step;
        }
        area += step;
        [end, drawn] = [at, true];
      });
      line.setAttribute('d', path);
      fill.setAttribute('d', area + close());
    }

    bars(points, one, bases, x, y, value) {
      const width = WIDTH / WINDOW * 0.8;

      return points.map(point => {
        const amount = value(one, point) ?? 0;
        const base = bases.get(point) ?? 0;
        bases.set(point, base + amount);

        return amount > 0 ? `M${(x(point) - width).toFixed(1)} ${y(base).toFixed(1)}H${x(point).toFixed(1)}V${y(base + amount).toFixed(1)}h-${width.toFixed(1)}Z` : '';
      }).join('');
    }
  }

  class Chart {
    constructor(id, title, format, series, options) {
      Object.assign(this, { title, format: orNone(format), series });
      this.plot = new Plot(series, format, options);
      this.when = make('span', 'when');
      this.values = series.map(() => make('b'));
      this.element = make(
        'figure', 'card',
        make('figcaption', 'head', make('span', 'title', title), this.when),
        make('div', 'values', ...series.map(({ name, tone }, index) => {
          const key = make('span', 'key', ...series.length > 1 ? [make('i', `tone-${tone}`)] : [], name);

          return make('div', 'value', ...series.length > 1 ? [key, this.values[index]] : [this.values[index]]);
        })),
        this.plot.element,
        make('div', 'span', make('span', '', '2 min ago'), make('span', '', 'now')),
      );
      this.element.id = id;
    }

    render(points, marked) {
      const point = marked ?? points.at(-1);
      const figures = this.series.map(({ key }) => this.format(point[key]));
      figures.forEach((figure, index) => write(this.values[index], figure));
      write(this.when, marked === null ? '' : `${round(points.at(-1).time - marked.time, 0)} s ago`);
      this.plot.render(points, marked, `${this.title}: ${this.series.map(({ name }, index) => `${name} ${figures[index]}`).join(', ')}`);
    }
  }

  const charts = [
    new Chart('chart-requests', 'Requests', rate, [{ name: 'a second', key: 'rate', tone: 'a' }], { least: 1 }),
    new Chart('chart-latency', 'Time to answer', duration, [{ name: 'p50', key: 'p50', tone: 'b' }, { name: 'p90', key: 'p90', tone: 'a' }, { name: 'p99', key: 'p99', tone: 'c' }], { least: 0.001 }),
    new Chart('chart-answers', 'Answers by status', rate, [{ name: '2xx', key: 's2', tone: 'a' }, { name: '3xx', key: 's3', tone: 'calm' }, { name: '4xx', key: 's4', tone: 'warn' }, { name: '5xx', key: 's5', tone: 'bad' }], { least: 1, stacked: true }),
    new Chart('chart-connections', 'Connections', whole, [{ name: 'open', key: 'open', tone: 'a' }, { name: 'requests in flight', key: 'inFlight', tone: 'b' }], { least: 10 }),
    new Chart('chart-lag', 'Loop lag', duration, [{ name: 'lag', key: 'lag', tone: 'a' }], { least: 0.01 }),
    new Chart('chart-memory', 'Memory', bytes, [{ name: 'memory', key: 'memory', tone: 'a' }], { least: 2 ** 20, unit: 2 ** 20 }),
  ];
  $('charts').append(...charts.map(chart => chart.element));

  // What is below the charts.

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
    write(facts.get('Refused'), whole(sum(Object.values(snapshot.refused))));
    write(facts.get('Abandoned'), whole(snapshot.abandoned));
  };

  const pools = new Map();
  const label = name => name.replace(/_(total|seconds|bytes)\b/g, '').replaceAll('_', ' ');
  const figure = (name, value) => name.includes('_seconds') ? duration(value) : name.includes('_bytes') ? bytes(value) : count(value);

  const renderPool = (name, figures, before, seconds) => {
    if (!pools.has(name)) {
      const plot = new Plot([{ key: point => point.pools.get(name), tone: 'a' }], whole, { least: 1, ticks: false });
      const parts = { plot, use: make('span', 'when'), bar: make('i'), list: make('dl') };
      parts.meter = make('div', 'meter', parts.bar);
      parts.element = make('article', 'card pool', make('div', 'head', make('h3', 'title', name), parts.use), parts.meter, plot.element, parts.list);
      pools.set(name, parts);
      $('pools').querySelector('.cards').append(parts.element);
    }
    const { plot, use, bar, meter, list } = pools.get(name);
    const { in_use: used, max } = figures;
    const measured = used !== undefined && max > 0;
    meter.hidden = plot.element.hidden = !measured;
    plot.least = measured ? max : 1;
    write(use, measured ? `${whole(used)} of ${whole(max)} in use` : '');
    bar.style.width = measured ? `${Math.min(100, 100 * used / max)}%` : '0';
    meter.classList.toggle('full', measured && used >= max);
    const rest = Object.entries(figures).filter(([key]) => !measured || (key !== 'in_use' && key !== 'max'));
    list.replaceChildren(...rest.flatMap(([key, value]) => {
      const speed = key.endsWith('_total') && seconds > 0 && before?.[key] !== undefined ? make('span', '', ` ${rate(grown(value, before[key]) / seconds)} `) : '';

      return [make('dt', '', label(key)), make('dd', '', speed, figure(key, value))];
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
      cell(before === null ? '–' : count(grown(requests, past.get(name)?.[0] ?? 0) / (now.time - before.time))),
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
      cell(before === null ? '–' : count(grown(process.answered, past.get(`${process.pid} ${process.started}`) ?? 0) / (now.time - before.time))),
      cell(whole(process.inFlight)),
      cell(whole(process.connections)),
      cell(duration(process.lag)),
      cell(duration(process.maxLag)),
      cell(bytes(process.memory)),
    ]));
  };

  // What has come, and whether anything comes.

  let points = [];
  let last = null;
  let pointed = null; // seconds ago, where the pointer is

  const render = () => {
    if (points.length === 0) {
      return;
    }
    const at = points.at(-1).time - (pointed ?? 0);
    const marked = pointed === null ? null : points.reduce((best, point) => Math.abs(point.time - at) < Math.abs(best.time - at) ? point : best);
    charts.forEach(chart => chart.render(points, marked));
    pools.forEach(({ plot }, name) => plot.render(points, marked, `${name}: in use`));
  };

  const take = snapshot => {
    const before = last !== null && snapshot.time > last.time ? last : null;
    points = [...points.filter(point => point.time > snapshot.time - WINDOW - 2 && point.time < snapshot.time), compare(snapshot, before)];
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

  let heard = performance.now();

  const connect = () => {
    const events = new EventSource('events');
    events.onmessage = ({ data }) => {
      heard = performance.now();
      const snapshot = JSON.parse(data);
      take(snapshot);
      if (snapshot.ready) {
        say('live', 'Live');
      } else {
        say('draining', snapshot.processes.some(process => process.stopping) ? 'Draining' : 'Starting');
      }
    };
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) { // an answer that was none: the browser does not try again by itself
        setTimeout(connect, 2000);
      }
    };
  };

  setInterval(() => {
    if (performance.now() - heard > GAP * 1000) {
      say('lost', last === null ? 'Not connected' : `Disconnected since ${new Date(last.time * 1000).toLocaleTimeString('en-GB')}`);
    }
  }, 500);

  write($('host'), location.host);
  connect();
})();
