'use strict';

const [SHORTEST, LONGEST] = [30, 120]; // minimum and maximum time span of the charts, in seconds
const GAP = 5; // seconds without a snapshot after which lines have a gap, and the page shows "Disconnected"
const WIDTH = 360;
const HEIGHT = 100;
const ROUTES = 50; // maximum number of routes in the table

let span = SHORTEST; // current time span of the charts, in seconds
let bounds = [0]; // upper bounds of the histogram's buckets, in seconds

const $ = id => document.getElementById(id);

/** Creates an element. Strings become text, never HTML, because names of routes and pools may contain any text. */
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

// Formats of numbers.

const round = (value, digits) => value.toLocaleString('en', { maximumFractionDigits: digits });
const count = value => value >= 1e9 ? `${round(value / 1e9, 2)} G` : round(value, value < 10 ? 1 : 0);
const whole = value => value >= 1e9 ? count(value) : round(value, 0);
const rate = value => `${count(value)} /s`;
const bytes = value => {
  const power = value < 2 ** 20 ? 1 : value < 2 ** 30 ? 2 : 3;
  const scaled = value / 1024 ** power;

  return `${round(scaled, scaled < 10 ? 1 : 0)} ${['KiB', 'MiB', 'GiB'][power - 1]}`;
};
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
const latency = value => value <= bounds[0] ? `< ${duration(bounds[0])}` : value >= bounds.at(-1) ? `> ${duration(bounds.at(-1))}` : duration(value);
const orNone = format => value => value === null || value === undefined ? '–' : format(value);

// Comparison of two snapshots.

const sum = values => values.reduce((total, value) => total + value, 0);
const grown = (now, before) => now >= before ? now - before : now; // a counter is lower after a restart of the server
const answers = (snapshot, from, to) => sum(Object.entries(snapshot.answered).filter(([status]) => status >= from && status < to).map(([, value]) => value));

/** Estimates the duration that a share of the responses did not exceed. Returns null if there were no responses. */
const quantile = (share, counts) => {
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
    maxLag: Math.max(0, ...now.processes.map(process => process.maxLag)),
    memory: sum(now.processes.map(process => process.memory)),
    pools: new Map(now.pools.map(([name, figures]) => [name, figures.in_use])),
    follows: before !== null && now.time - before.time < GAP,
  };
  if (before === null || now.time <= before.time) {
    return point;
  }
  const seconds = now.time - before.time;
  const classes = [2, 3, 4, 5].map(digit => grown(answers(now, digit * 100, digit * 100 + 100), answers(before, digit * 100, digit * 100 + 100)) / seconds);
  const counts = now.durationCounts.map((value, bucket) => grown(value, before.durationCounts[bucket] ?? 0));

  return {
    ...point,
    rate: sum(classes),
    s2: classes[0], s3: classes[1], s4: classes[2], s5: classes[3],
    p50: quantile(0.5, counts),
    p90: quantile(0.9, counts),
    p99: quantile(0.99, counts),
  };
};
