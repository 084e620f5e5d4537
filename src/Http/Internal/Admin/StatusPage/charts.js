'use strict';

/** Returns a round number at or above a value. The unit is 1, or 1 MiB for numbers of bytes. */
const ceiling = (value, unit) => {
  const power = unit * 10 ** Math.floor(Math.log10(value / unit));

  return power * [1, 2, 3, 4, 6, 8, 10].find(step => step * power >= value * 0.999);
};

/** Returns a linear scale from 0, with two ticks. */
const linear = (least, unit = 1) => most => {
  const top = ceiling(Math.max(least, most * 1.02), unit);

  return { y: amount => HEIGHT * (1 - amount / top), ticks: [top, top / 2] };
};

/** Returns a logarithmic scale, with a tick for each power of ten. */
const logarithmic = (least, top) => most => {
  const [from, to] = [Math.log10(least), Math.max(Math.log10(top), Math.ceil(Math.log10(most)))];

  return {
    y: amount => HEIGHT * (1 - (Math.log10(Math.max(amount, least)) - from) / (to - from)),
    ticks: Array.from({ length: Math.round(to - from) }, (_, index) => 10 ** (to - index)),
  };
};

class Plot {
  constructor(series, { scale, format = null, stacked = false }) {
    Object.assign(this, { series, scale, format, stacked });
    this.grid = draw('path', 'grid');
    this.cursor = draw('path', 'cursor');
    this.fills = series.map(({ tone }) => draw('path', `${stacked ? 'bars' : 'area'} tone-${tone}`));
    this.strokes = series.map(({ tone }) => draw('path', `line tone-${tone}`));
    this.svg = draw('svg', '', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' });
    this.svg.append(this.grid, ...stacked || series.length === 1 ? this.fills : [], ...stacked ? [] : this.strokes, this.cursor);
    this.ticks = make('div', 'ticks');
    this.element = make('div', format === null ? 'plot' : 'plot scaled', this.svg, this.ticks);
    this.element.addEventListener('pointermove', event => {
      const { left, width } = this.svg.getBoundingClientRect();
      pointAt((1 - (event.clientX - left) / width) * span);
    });
    this.element.addEventListener('pointerleave', () => pointAt(null));
  }

  render(points, marked, label) {
    const amounts = points.map(point => this.series.map(({ key }) => (typeof key === 'string' ? point[key] : key(point)) ?? null));
    const { y, ticks } = this.scale(Math.max(0, ...amounts.map(these => this.stacked ? sum(these) : Math.max(...these))));
    const x = point => WIDTH * (1 - (points.at(-1).time - point.time) / span);
    this.stacked ? this.bars(points, amounts, x, y) : this.series.forEach((_, index) => this.line(points, amounts, index, x, y));
    const lines = this.format === null ? [] : ticks.map(y);
    this.grid.setAttribute('d', [...lines, HEIGHT].map(at => `M0 ${at.toFixed(1)}H${WIDTH}`).join(''));
    this.cursor.setAttribute('d', marked === null ? '' : `M${x(marked).toFixed(1)} 0V${HEIGHT}`);
    this.svg.setAttribute('aria-label', label);
    this.ticks.replaceChildren(...lines.map((at, index) => {
      const tick = make('span', '', this.format(ticks[index]));
      tick.style.top = `${at}%`; // HEIGHT is 100, so the value is a percentage

      return tick;
    }));
  }

  line(points, amounts, index, x, y) {
    let [path, area, start, end] = ['', '', null, 0];
    const close = () => {
      area += start === null ? '' : `L${end} ${HEIGHT}L${start} ${HEIGHT}Z`;
      start = null;
    };
    points.forEach((point, number) => {
      const amount = amounts[number][index];
      if (amount === null || !point.follows) {
        close();
      }
      if (amount !== null) {
        const [at, to] = [x(point).toFixed(1), y(amount).toFixed(1)];
        path += start === null ? `M${at} ${to}h0` : `L${at} ${to}`; // h0 draws a dot if no point follows
        area += `${start === null ? 'M' : 'L'}${at} ${to}`;
        [start, end] = [start ?? at, at];
      }
    });
    close();
    this.strokes[index].setAttribute('d', path);
    this.fills[index].setAttribute('d', area);
  }

  bars(points, amounts, x, y) {
    const width = (WIDTH / span * 0.8).toFixed(1);
    this.series.forEach((_, index) => this.fills[index].setAttribute('d', points.map((point, number) => {
      const base = sum(amounts[number].slice(0, index));
      const amount = amounts[number][index];

      return amount > 0 ? `M${x(point).toFixed(1)} ${y(base).toFixed(1)}V${y(base + amount).toFixed(1)}h-${width}V${y(base).toFixed(1)}Z` : '';
    }).join('')));
  }
}

class Chart {
  constructor(id, title, series, options) {
    Object.assign(this, { title, series, say: orNone(options.say ?? options.format), plot: new Plot(series, options) });
    this.when = make('span', 'when');
    this.from = make('span');
    this.values = series.map(() => make('b'));
    this.element = make(
      'figure', 'card',
      make('figcaption', 'head', make('span', 'title', title), this.when),
      make('div', 'values', ...series.map(({ name, tone }, index) => {
        const key = series.length > 1 ? [make('span', 'key', make('i', `tone-${tone}`), name)] : [];

        return make('div', 'value', ...key, this.values[index]);
      })),
      this.plot.element,
      make('div', 'span scaled', this.from, make('span', '', 'now')),
    );
    this.element.id = id;
  }

  render(points, marked) {
    const figures = this.series.map(({ key }) => this.say((marked ?? points.at(-1))[key]));
    figures.forEach((figure, index) => write(this.values[index], figure));
    write(this.when, marked === null ? '' : `${round(points.at(-1).time - marked.time, 0)} s ago`);
    write(this.from, span < LONGEST ? `${round(span, 0)} s ago` : `${LONGEST / 60} min ago`);
    this.plot.render(points, marked, `${this.title}: ${this.series.map(({ name }, index) => `${name} ${figures[index]}`).join(', ')}`);
  }
}
