'use strict';

// Data from the server is inserted as text, never as HTML.

const SIZE = 25; // aircraft on a page of the list
const EVENTS = 100; // largest number of events on the page
const GATHER = 200; // milliseconds: all events of this time cause one request for the list
const AGAIN = { live: 30_000, otherwise: 5_000, failed: 2_000 }; // milliseconds until the list is requested again without an event
const RECONNECT = 3_000; // milliseconds until the page connects to the events again

const $ = id => document.getElementById(id);
const pause = milliseconds => new Promise(resolve => { setTimeout(resolve, milliseconds); });
const path = number => `/aircraft/${encodeURIComponent(number)}`;

const write = (node, text) => {
  if (node.textContent !== text) {
    node.textContent = text;
  }
};

const make = (name, ...content) => {
  const node = document.createElement(name);
  node.append(...content);

  return node;
};

// Requests to the server.

class Problem extends Error {
  constructor(detail, status = 0, errors = []) {
    super(detail);
    this.status = status;
    this.errors = errors; // [{field, detail}]
  }
}

const versions = new Map(); // entity tag of the last response, by URL

// Sends a request, and returns the decoded JSON. With a version, the server makes the change only if the aircraft still
// has that version.
const ask = async (method, url, body = null, type = 'application/json', version = null) => {
  const headers = { ...(version === null ? {} : { 'If-Match': version }), Accept: 'application/json, application/problem+json', ...(body === null ? {} : { 'Content-Type': type }) };
  let response;
  let text;
  try {
    response = await fetch(url, { method, headers, body, cache: 'no-store' });
    text = await response.text();
    if (response.headers.has('ETag')) {
      versions.set(url, response.headers.get('ETag'));
    }
  } catch {
    throw new Problem('The server can not be reached');
  }
  let answer = null;
  try {
    answer = text === '' ? null : JSON.parse(text);
  } catch {
    // The response is not JSON. Its status says whether the request has succeeded.
  }
  if (!response.ok) {
    throw new Problem(answer?.detail ?? `The server answered with ${response.status} ${response.statusText}`, response.status, answer?.errors);
  }

  return answer;
};

const say = text => { $('message').textContent = text; };

// Forms: the error of a field is shown beside the field, and any other error in the form's element .problem.

const showProblem = (form, { message = '', errors = [] }) => {
  const faults = new Map(errors.map(({ field, detail }) => [field, detail]));
  const places = [...form.querySelectorAll('[data-field]')];
  for (const place of places) {
    const fault = faults.get(place.dataset.field);
    write(place, fault ?? '');
    form.elements.namedItem(place.dataset.field).setAttribute('aria-invalid', String(fault !== undefined));
    faults.delete(place.dataset.field);
  }
  const isShownByFields = errors.length > 0 && faults.size === 0;
  write(form.querySelector('.problem'), isShownByFields ? '' : message);
  form.querySelector('[aria-invalid="true"]')?.focus();
};

const onSubmit = (form, work) => {
  form.addEventListener('submit', async event => {
    event.preventDefault();
    if (form.ariaBusy === 'true') { // a second click: the button is not disabled, because it would lose the focus
      return;
    }
    form.ariaBusy = 'true';
    showProblem(form, {});
    try {
      await work(event.submitter);
    } catch (problem) {
      showProblem(form, problem);
    }
    form.ariaBusy = 'false';
  });
};

// The list. A page has only a link to the next one, so the addresses of the earlier pages are kept here.

const FIRST = `/aircraft?limit=${SIZE}`;
let trail = [FIRST]; // addresses from the first page to the requested page
let shownTrail = null; // addresses from the first page to the page that is shown
let following = null; // address of the page after the page that is shown
let asked = 0;
let shown = 0; // number of the request whose response is shown
let timer = 0;
let isLive = false;

const fill = (row, { number, title, serial_number: serial, assembly_date: assembled, added_at: added }) => {
  [number, title, serial, assembled ?? '–'].forEach((text, column) => { write(row.cells[column], text); });
  const time = row.querySelector('time');
  time.dateTime = added;
  write(time, new Date(added).toLocaleString());
  const [certificate, edit, remove] = row.querySelector('.actions').children;
  certificate.href = `${path(number)}/certificate`;
  certificate.setAttribute('aria-label', `Certificate of ${number}`);
  edit.setAttribute('aria-label', `Edit ${number}`);
  remove.setAttribute('aria-label', `Delete ${number}`);
};

const flash = row => {
  if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
    row.animate([{ backgroundColor: 'var(--flash)' }, { backgroundColor: 'transparent' }], 2_000);
  }
};

const show = page => {
  const body = $('aircraft').tBodies[0];
  const known = new Map([...body.rows].map(row => [row.dataset.number, row]));
  const numbers = new Set(page.aircraft.map(({ number }) => number));
  known.forEach((row, number) => {
    if (!numbers.has(number)) {
      row.remove();
    }
  });
  page.aircraft.forEach((aircraft, place) => {
    const row = known.get(aircraft.number) ?? $('row').content.firstElementChild.cloneNode(true);
    const content = JSON.stringify(aircraft);
    if (row.dataset.content !== content) {
      Object.assign(row.dataset, { number: aircraft.number, content });
      fill(row, aircraft);
      if (trail === shownTrail) {
        flash(row);
      }
    }
    if (body.rows[place] !== row) { // a row that is moved would lose the focus
      body.insertBefore(row, body.rows[place] ?? null);
    }
  });
  following = page.next;
  shownTrail = trail;
  $('none').hidden = page.aircraft.length > 0;
  $('first').disabled = $('previous').disabled = trail.length === 1;
  $('next').disabled = following === null;
  write($('place'), `Page ${trail.length}`);
};

/** Requests the page of the list and shows it, now and again after a delay. */
const refresh = async () => {
  const mine = ++asked;
  const wanted = trail;
  let delay = isLive ? AGAIN.live : AGAIN.otherwise;
  try {
    const page = await ask('GET', wanted.at(-1));
    if (mine > shown && wanted === trail) { // a response may arrive after that of a later request
      shown = mine;
      show(page);
    }
    write($('trouble'), '');
    $('aircraft').classList.remove('stale');
  } catch ({ message }) {
    if (mine < shown) {
      return;
    }
    delay = AGAIN.failed;
    write($('trouble'), message);
    $('aircraft').classList.add('stale');
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, delay);
};

const go = way => {
  trail = way;

  return refresh();
};

$('first').addEventListener('click', () => go([FIRST]));
$('previous').addEventListener('click', () => go(shownTrail.slice(0, -1)));
$('next').addEventListener('click', () => go([...shownTrail, following]));

onSubmit($('seek'), async () => {
  const after = $('seek-after').value.trim();
  const from = after === '' ? FIRST : `/aircraft?after=${encodeURIComponent(after)}&limit=${SIZE}`;
  await ask('GET', from); // asks here, so that an error is shown in this form and not above the list
  await go(from === FIRST ? [FIRST] : [FIRST, from]);
});

// Adding, editing, deleting.

const open = dialog => {
  showProblem(dialog.querySelector('form'), {});
  dialog.showModal();
};

const close = dialog => {
  dialog.close();
  if (document.activeElement === document.body || dialog.contains(document.activeElement)) { // the element that had the focus before does not exist any more
    $('add').focus();
  }
};

for (const dialog of document.querySelectorAll('dialog')) {
  const form = dialog.querySelector('form');
  const isBusy = () => form.ariaBusy === 'true'; // while a request runs, the dialog stays open to show its result
  dialog.querySelector('.cancel').addEventListener('click', () => isBusy() || close(dialog));
  dialog.addEventListener('cancel', event => isBusy() && event.preventDefault());
}

const editor = $('editor');
const editorForm = editor.querySelector('form');
let edited = null; // number of the aircraft; null for a new one
let editedVersion = null; // version that the form shows; a later version must not be overwritten

const openEditor = aircraft => {
  edited = aircraft?.number ?? null;
  editedVersion = edited === null ? null : versions.get(path(edited)) ?? null;
  const { number, title, serial_number: serial, assembly_date: date } = editorForm.elements;
  [number.value, title.value, serial.value, date.value] = [edited ?? '', aircraft?.title ?? '', aircraft?.serial_number ?? '', aircraft?.assembly_date ?? ''];
  number.readOnly = edited !== null;
  write($('editor-title'), edited === null ? 'Add an aircraft' : `Edit ${edited}`);
  write(editorForm.querySelector('.main'), edited === null ? 'Add' : 'Save');
  open(editor);
  (edited === null ? number : title).focus();
};

onSubmit(editorForm, async () => {
  const { number, title, serial_number: serial, assembly_date: date } = editorForm.elements;
  if (date.validity.badInput) {
    throw new Problem('', 0, [{ field: 'assembly_date', detail: 'is not a valid date' }]);
  }
  const wasThere = edited;
  const particulars = { title: title.value, serial_number: serial.value, assembly_date: date.value === '' ? null : date.value };
  const stored = wasThere === null
    ? await ask('POST', '/aircraft', JSON.stringify({ number: number.value, ...particulars }))
    : await ask('PUT', path(wasThere), JSON.stringify(particulars), 'application/json', editedVersion);
  close(editor);
  say(`${stored.number} was ${wasThere === null ? 'added' : 'changed'}.`);
  await refresh();
});

const remover = $('remover');
const removerForm = remover.querySelector('form');
let removed = '';

onSubmit(removerForm, async () => {
  const number = removed;
  await ask('DELETE', path(number));
  say(`${number} was deleted.`);
  await refresh();
  close(remover);
});

$('add').addEventListener('click', () => openEditor(null));
$('aircraft').addEventListener('click', async ({ target }) => {
  const wish = target.dataset.do;
  const number = target.closest('tr')?.dataset.number;
  if (wish === 'edit') {
    try {
      const aircraft = await ask('GET', path(number)); // the current state
      document.querySelector('dialog[open]') ?? openEditor(aircraft);
    } catch ({ message }) {
      say(message);
    }
  } else if (wish === 'delete') {
    removed = number;
    write($('remover-title'), `Delete ${number}?`);
    open(remover);
  }
});

// Import and report.

onSubmit($('import'), async () => {
  const { file } = $('import').elements;
  if (file.files.length === 0) {
    throw new Problem('', 0, [{ field: 'file', detail: 'must be chosen' }]);
  }
  const { added } = await ask('POST', '/aircraft/import', file.files[0], 'text/csv');
  $('import').reset();
  say(`${added} aircraft added from the file.`);
  await refresh();
});

onSubmit($('report'), async button => {
  const { counts } = await ask('POST', '/reports', JSON.stringify({ by: button.value, top: 10 }));
  const rows = counts.map(({ value, count }) => {
    const head = make('th', value);
    head.scope = 'row';

    return make('tr', head, make('td', count.toLocaleString()));
  });
  write($('counts').caption, button.textContent);
  $('counts').tBodies[0].replaceChildren(...rows);
  $('counts').hidden = false;
});

// Live events. Events may be lost, so they only cause a request for the list, which always shows the table.

let isStale = false;
let isLooking = false;

const lookSoon = async () => {
  isStale = true;
  if (isLooking) {
    return;
  }
  isLooking = true;
  while (isStale) {
    await pause(GATHER);
    isStale = false;
    await refresh();
  }
  isLooking = false;
};

const tell = text => {
  $('quiet').hidden = true;
  const now = new Date();
  const time = make('time', now.toLocaleTimeString());
  time.dateTime = now.toISOString();
  $('events').prepend(make('li', time, make('span', text)));
  $('events').children[EVENTS]?.remove();
};

const become = (state, text) => {
  isLive = state === 'live';
  $('state').dataset.state = state;
  write($('state'), text);
};

const connect = () => {
  const events = new EventSource('/aircraft/events');
  events.onopen = () => {
    become('live', 'Live');
    refresh();
    setTimeout(refresh, AGAIN.failed); // the server starts to listen for changes only a moment after its response begins
  };
  for (const change of ['added', 'updated', 'deleted']) {
    events.addEventListener(change, ({ data }) => {
      tell(`${data} ${change}`);
      lookSoon();
    });
  }
  events.addEventListener('missed', () => {
    tell('some changes may have been missed');
    lookSoon();
  });
  events.onerror = () => {
    if (events.readyState === EventSource.CLOSED) { // the response was an error, after which the browser does not connect again
      askWhyThereAreNone();
    } else {
      become('lost', 'Disconnected');
    }
  };
};

/** Requests the status of the events with HEAD, because an EventSource does not provide it. */
const askWhyThereAreNone = async () => {
  const status = await ask('HEAD', '/aircraft/events').then(() => 200, problem => problem.status);
  if (status === 501) {
    become('none', 'No live events on this server');
    write($('quiet'), 'This server has no live events. The list is loaded again every few seconds.');
    refresh();
  } else {
    become('lost', 'Disconnected');
    setTimeout(connect, RECONNECT);
  }
};

refresh();
connect();
