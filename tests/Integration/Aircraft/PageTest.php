<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Tests\Aircraft\AircraftPage;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\Http\ServeTestCase;
use Spindle\Tests\Integration\Http\Chromium;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\WebServer;

/** The page at /, as a user sees it. */
#[Group('full')]
#[RequiresPhpExtension('pcntl')]
final class PageTest extends ServeTestCase
{
    use RunsAircraft;
    use WebServer;

    /** Script that drops timers of a second or more, so that the page does not poll. */
    private const WITHOUT_CLOCK = 'const later = setTimeout;'
        . ' window.setTimeout = (work, milliseconds) => milliseconds < 1000 ? later(work, milliseconds) : 0;';

    /** Script that makes timers run 50 times as fast. */
    private const WITH_FAST_CLOCK = 'const later = setTimeout;'
        . ' window.setTimeout = (work, milliseconds) => later(work, milliseconds / 50);';

    private const MARKUP = '<img src=x onerror=alert(1)>';

    private ?Chromium $browser = null;

    #[After(6)]
    protected function endBrowser(): void
    {
        $this->browser?->close();
        $this->browser = null;
    }

    public function testItListsWhatIsInTheTableAndPagesThroughIt(): void
    {
        $this->seed(60);
        $stored = $this->database()
            ->query('SELECT number, title, serial_number, assembly_date::text FROM aircraft ORDER BY number')
            ->allNumeric();
        $page = $this->page();
        $page->awaitPlace('Page 1');
        self::assertSame(\array_slice($stored, 0, 25), $page->rows());
        self::assertTrue($page->evaluate("document.getElementById('previous').disabled"));

        $page->click('#next');
        $page->awaitPlace('Page 2');
        self::assertSame(\array_slice($stored, 25, 25), $page->rows());
        $page->click('#next');
        $page->awaitPlace('Page 3');
        self::assertSame(\array_slice($stored, 50), $page->rows());
        self::assertTrue($page->evaluate("document.getElementById('next').disabled"));
        $page->click('#previous');
        $page->awaitPlace('Page 2');
        self::assertSame(\array_slice($stored, 25, 25), $page->rows());
        $page->click('#first');
        $page->awaitPlace('Page 1');
        self::assertSame(\array_slice($stored, 0, 25), $page->rows());

        $page->fill('#seek', ['after' => 'S-000057']);
        $page->click('#seek button');
        $page->awaitPlace('Page 2');
        self::assertSame(\array_slice($stored, 58), $page->rows());
        $page->fill('#seek', ['after' => 's-1']);
        $page->click('#seek button');
        $page->await(
            "document.querySelector('#seek .error').textContent.startsWith('must be 1 to 16 capital letters')",
        );
        self::assertSame(\array_slice($stored, 58), $page->rows(), 'the list stays');
        self::assertSame([], $page->complaints(1));
    }

    public function testOneIsAddedByTheKeyboardAlone(): void
    {
        $page = $this->page();
        $page->await("!document.getElementById('none').hidden");
        $page->evaluate("document.getElementById('add').focus()");
        $page->press('Enter');
        $page->await("document.activeElement.name === 'number'");
        foreach (['D-AIMA', 'Airbus A380', 'MSN 038'] as $text) {
            $page->call('Input.insertText', ['text' => $text]);
            $page->press('Tab');
        }
        $page->press('Enter');

        $page->awaitRow('D-AIMA');
        self::assertSame([['D-AIMA', 'Airbus A380', 'MSN 038', '–']], $page->rows());
        self::assertSame([['D-AIMA', 'Airbus A380', 'MSN 038', null]], $this->stored());
        self::assertSame('D-AIMA was added.', $page->evaluate("document.getElementById('message').textContent"));
        self::assertSame(
            [false, 'add'],
            $page->evaluate("[document.getElementById('editor').open, document.activeElement.id]"),
            'the focus is where it was',
        );

        $page->press('Enter');
        $page->await("document.getElementById('editor').open && document.activeElement.value === ''");
        $page->press('Escape');
        $page->await("!document.getElementById('editor').open && document.activeElement.id === 'add'");
        self::assertSame([], $page->complaints());
    }

    public function testWhatIsWrongWithAFieldStandsBesideItAndNothingIsStored(): void
    {
        $page = $this->page();
        $page->click('#add');
        $page->fill(
            '#editor form',
            ['number' => 'd-aima', 'title' => ' ', 'serial_number' => 'MSN 038', 'assembly_date' => ''],
        );
        $page->click('#editor .main');
        $page->await("document.querySelector('#editor [data-field=number]').textContent !== ''");

        self::assertSame(
            [
                'number' => 'must be 1 to 16 capital letters, digits and hyphens, and not begin with a hyphen',
                'title' => 'must not be empty',
                'serial_number' => '',
                'assembly_date' => '',
            ],
            $page->faults(),
        );
        self::assertSame(
            ['number', 'title'],
            $page->evaluate("[...document.querySelectorAll('#editor [aria-invalid=true]')].map(field => field.name)"),
        );
        self::assertSame(
            [true, true, true, true],
            $page->evaluate(
                "[...document.querySelectorAll('#editor .field')]"
                . ".map(field => field.querySelector('input').getAttribute('aria-describedby')"
                . " === field.querySelector('.error').id)",
            ),
        );
        self::assertSame('number', $page->evaluate('document.activeElement.name'));
        self::assertSame([], $this->stored());

        $page->fill('#editor form', ['number' => 'D-AIMA', 'title' => 'Airbus A380', 'assembly_date' => '2009-10-13']);
        $page->click('#editor .main');
        $page->awaitRow('D-AIMA');
        self::assertSame([['D-AIMA', 'Airbus A380', 'MSN 038', '2009-10-13']], $this->stored());

        $page->click('#add');
        self::assertSame(['', '', '', ''], array_values($page->faults()), 'nothing is left of what was wrong before');
        $page->fill('#editor form', ['number' => 'D-AIMA', 'title' => 'Another', 'serial_number' => 'MSN 1']);
        $page->click('#editor .main');
        $page->await("document.querySelector('#editor .error[data-field=number]').textContent === 'already exists'");
        self::assertCount(1, $this->stored());
        self::assertSame([], $page->complaints(2));
    }

    public function testEditingChangesIt(): void
    {
        $this->insert('D-AIMA', 'Airbus A380');
        $page = $this->page();
        $page->awaitRow('D-AIMA');
        $this->database()->execute("UPDATE aircraft SET serial_number = 'MSN 038'");
        $page->click('[aria-label="Edit D-AIMA"]');
        $page->await("document.getElementById('editor').open");
        self::assertSame(
            ['D-AIMA', 'Airbus A380', 'MSN 038', '2009-10-13', true],
            $page->evaluate(
                '(({ number, title, serial_number, assembly_date }) =>'
                . ' [number.value, title.value, serial_number.value, assembly_date.value, number.readOnly])'
                . "(document.querySelector('#editor form').elements)",
            ),
            'it is as it is now, and keeps its number',
        );
        $page->fill('#editor form', ['title' => 'Airbus A380-800', 'assembly_date' => '']);
        $page->click('#editor .main');

        $page->awaitRow('D-AIMA', 'Airbus A380-800');
        self::assertSame([['D-AIMA', 'Airbus A380-800', 'MSN 038', null]], $this->stored());
        self::assertSame('D-AIMA was changed.', $page->evaluate("document.getElementById('message').textContent"));

        $page->click('[aria-label="Edit D-AIMA"]');
        $page->await("document.getElementById('editor').open");
        $this->database()->execute('DELETE FROM aircraft');
        $page->click('#editor .main');
        $page->await("document.querySelector('#editor .problem').textContent.includes('D-AIMA')");
        self::assertSame([], $this->stored(), 'one that is gone does not come back');
        self::assertSame([], $page->complaints(1));
    }

    public function testDeletingRemovesOneThatIsConfirmed(): void
    {
        $this->insert('D-AIMA');
        $this->insert('D-AIMB');
        $page = $this->page();
        $page->awaitRow('D-AIMB');
        $page->click('[aria-label="Delete D-AIMA"]');
        self::assertSame('Delete D-AIMA?', $page->evaluate("document.getElementById('remover-title').innerText"));
        $page->click('#remover .cancel');
        self::assertFalse($page->evaluate("document.getElementById('remover').open"));
        $page->click('[aria-label="Delete D-AIMB"]');
        $page->click('#remover .main');

        $page->await("!document.getElementById('remover').open");
        self::assertSame(['D-AIMA'], array_column($page->rows(), 0));
        self::assertSame(['D-AIMA'], array_column($this->stored(), 0));
        self::assertSame('add', $page->evaluate('document.activeElement.id'), 'the focus is not lost with its button');
        self::assertSame([], $page->complaints());
    }

    public function testWhatIsUnderWayIsWaitedForBeforeItsDialogCloses(): void
    {
        $this->insert('D-AIMA');
        $this->insert('D-AIMB');
        $page = $this->page(
            'const send = window.fetch; window.fetch = async (...all) => {'
            . " if (all[1].method === 'DELETE') { await new Promise(done => { window.goOn = done; }); }"
            . ' return send(...all); };',
        );
        $page->awaitRow('D-AIMB');
        $page->click('[aria-label="Delete D-AIMA"]');
        $page->click('#remover .main');
        $page->await("typeof window.goOn === 'function'");
        $page->click('#remover .cancel');
        self::assertTrue($page->evaluate("document.getElementById('remover').open"));
        $page->evaluate('window.goOn()');

        $page->await("!document.getElementById('remover').open");
        self::assertSame('D-AIMA was deleted.', $page->evaluate("document.getElementById('message').textContent"));
        self::assertSame(['D-AIMB'], array_column($this->stored(), 0));
    }

    public function testWhatIsChangedElsewhereAppearsByItself(): void
    {
        $this->insert('D-AIMA');
        $page = $this->page(self::WITHOUT_CLOCK);
        $page->awaitState('live');
        $page->awaitRow('D-AIMA');
        $page->evaluate("document.querySelector('[aria-label=\"Edit D-AIMA\"]').focus()");
        $this->untilTold(
            $page,
            'D-AIMA updated',
            'PUT',
            '/aircraft/D-AIMA',
            '{"title":"Airbus A380-800","serial_number":"MSN 038"}',
        );
        $page->awaitRow('D-AIMA', 'Airbus A380-800');
        self::assertSame(
            'Edit D-AIMA',
            $page->evaluate("document.activeElement.getAttribute('aria-label')"),
            'the focus stays where it was',
        );

        self::assertSame(
            201,
            $this->ask(
                'POST',
                '/aircraft',
                '{"number":"D-AIMB","title":"Airbus A380","serial_number":"MSN 041"}',
            )->status,
        );
        $page->awaitRow('D-AIMB');
        $page->awaitTold('D-AIMB added');
        self::assertSame(204, $this->ask('DELETE', '/aircraft/D-AIMA')->status);
        $page->awaitNoRow('D-AIMA');
        $page->awaitTold('D-AIMA deleted');
        self::assertSame(['D-AIMB'], array_column($page->rows(), 0));
        self::assertSame([], $page->complaints());
    }

    public function testItLooksAgainWhereSomeChangesMayHaveBeenMissed(): void
    {
        $this->insert('D-AIMA');
        $page = $this->page(self::WITHOUT_CLOCK);
        $page->awaitState('live');
        $page->awaitRow('D-AIMA');
        $listeners = 'FROM pg_stat_activity WHERE datname = current_database()'
            . " AND query LIKE 'LISTEN%' AND state = 'idle'";
        Eventually::holds(
            fn(): bool => $this->database()->query("SELECT count(*) {$listeners}")->value() === 1,
            'the server listens',
            20,
        );
        $this->insert('D-AIMB');
        $this->database()->execute("SELECT pg_terminate_backend(pid) {$listeners}");

        $page->awaitTold('some changes may have been missed');
        $page->awaitRow('D-AIMB');
        self::assertSame([], $page->complaints());
    }

    public function testItLooksAgainFromTimeToTime(): void
    {
        $page = $this->page(self::WITH_FAST_CLOCK);
        $page->awaitState('live');
        $page->await("!document.getElementById('none').hidden");
        $this->insert('D-AIMA');

        $page->awaitRow('D-AIMA');
        self::assertSame([], $page->complaints());
    }

    public function testItLooksAgainWhenTheServerIsBack(): void
    {
        $page = $this->page(self::WITHOUT_CLOCK);
        $page->awaitState('live');
        $this->stopServe();
        $page->awaitState('lost');
        $page->click('#seek button');
        $page->await("document.querySelector('#seek .problem').textContent === 'The server can not be reached'");
        $this->insert('D-AIMA');
        $this->serve($this->aircraft(), ['--listen', str_replace('tcp://', '', $this->address)]);

        $page->awaitRow('D-AIMA');
        $page->awaitState('live');
    }

    public function testItTellsOfAnUnreachableDatabaseAndComesBackByItself(): void
    {
        $this->insert('D-AIMA');
        $page = $this->page();
        $page->awaitRow('D-AIMA');
        Cluster::ask("ALTER DATABASE {$this->databaseName} WITH ALLOW_CONNECTIONS false");
        $this->database()->execute(
            'SELECT pg_terminate_backend(pid) FROM pg_stat_activity'
            . ' WHERE datname = current_database() AND pid <> pg_backend_pid()',
        );
        $page->click('#add');
        $page->fill('#editor form', ['number' => 'D-AIMB', 'title' => 'Airbus A380', 'serial_number' => 'MSN 041']);
        $page->click('#editor .main');
        $page->await("document.querySelector('#editor .problem').textContent !== ''", 45);
        self::assertStringContainsString(
            'database',
            self::text($page->evaluate("document.querySelector('#editor .problem').textContent")),
        );
        $page->await(
            "document.getElementById('trouble').textContent === 'The database can not be reached; nothing was changed'",
            45,
        );
        self::assertSame(['D-AIMA'], array_column($page->rows(), 0), 'what was seen last stays');

        Cluster::ask("ALTER DATABASE {$this->databaseName} WITH ALLOW_CONNECTIONS true");
        $page->await("document.getElementById('trouble').textContent === ''", 45);
        $page->click('#editor .main');
        $page->awaitRow('D-AIMB');
        self::assertSame(['D-AIMA', 'D-AIMB'], array_column($this->stored(), 0));
    }

    public function testWhatIsStoredIsShownAsText(): void
    {
        $page = $this->page();
        $page->click('#add');
        $page->fill('#editor form', ['number' => 'D-AIMA', 'title' => self::MARKUP, 'serial_number' => '<b>1</b>']);
        $page->click('#editor .main');
        $page->awaitRow('D-AIMA', self::MARKUP);
        $page->click('#report button[value=title]');
        $page->await("!document.getElementById('counts').hidden");
        $page->click('[aria-label="Edit D-AIMA"]');
        $page->await("document.getElementById('editor').open");

        self::assertSame([['D-AIMA', self::MARKUP, '<b>1</b>', '–']], $page->rows());
        self::assertSame(
            self::MARKUP . ' | 1',
            $page->evaluate(
                "[...document.querySelectorAll('#counts tbody :is(th, td)')].map(cell => cell.textContent).join(' | ')",
            ),
        );
        self::assertSame(self::MARKUP, $page->evaluate("document.querySelector('#editor [name=title]').value"));
        self::assertSame(0, $page->evaluate("document.querySelectorAll('main img, b').length"));
        self::assertSame([], $page->complaints());
    }

    public function testAFileIsImportedAndAReportIsMadeOfIt(): void
    {
        $page = $this->page();
        $page->click('#import button');
        $page->await("document.querySelector('#import .error').textContent === 'must be chosen'");
        $page->choose(
            '#import-file',
            $this->file(
                'bad.csv',
                "number,title,serial_number,assembly_date\n"
                . "D-AIMA,Airbus A380,MSN 038,2009-10-13\nD-AIMB,Airbus A380,MSN 041,yesterday-ish\n",
            ),
        );
        $page->click('#import button');
        $page->await(
            "document.querySelector('#import .problem').textContent.startsWith('Line 3: assembly_date must be a date')",
        );
        self::assertSame([], $this->stored());
        $page->choose(
            '#import-file',
            $this->file(
                'good.csv',
                "number,title,serial_number,assembly_date\nD-AIMA,Airbus A380,MSN 038,2009-10-13\n"
                . "D-AIMB,Airbus A380,MSN 041,\n2-ABCD,Saab 340,MSN 7,1998-04-30\n",
            ),
        );
        $page->click('#import button');

        $page->await("document.getElementById('message').textContent === '3 aircraft added from the file.'");
        $page->awaitRow('D-AIMB');
        self::assertSame(['2-ABCD', 'D-AIMA', 'D-AIMB'], array_column($this->stored(), 0));
        $cells = "[...document.querySelectorAll('#counts tbody :is(th, td)')]"
            . ".map(cell => cell.textContent).join(' | ')";
        $page->click('#report button[value=title]');
        $page->await("{$cells} === 'Airbus A380 | 2 | Saab 340 | 1'");
        $page->click('#report button[value=assembly_year]');
        $page->await("{$cells} === '1998 | 1 | 2009 | 1 | unknown | 1'");

        self::assertStringStartsWith(
            'image/svg+xml',
            self::text($page->evaluate(
                "fetch(document.querySelector('[aria-label=\"Certificate of D-AIMA\"]').href)"
                . ".then(answer => answer.headers.get('Content-Type'))",
            )),
        );
        self::assertSame(
            "number,title,serial_number,assembly_date\n2-ABCD,Saab 340,MSN 7,1998-04-30\n"
            . "D-AIMA,Airbus A380,MSN 038,2009-10-13\nD-AIMB,Airbus A380,MSN 041,\n",
            $page->evaluate("fetch(document.querySelector('a[download]').href).then(answer => answer.text())"),
        );
        self::assertSame([], $page->complaints(1));
    }

    public function testUnderTheBuiltInServerItWorksAndSaysThatThereAreNoLiveEvents(): void
    {
        $this->file('app.php', "<?php\n{$this->aircraft(['AIRCRAFT_CONNECTIONS' => '1'])}\n");
        $root = \dirname(__DIR__, 3);
        $log = '$line = "{$_SERVER[\'REQUEST_METHOD\']} {$_SERVER[\'REQUEST_URI\']}\n";'
            . ' file_put_contents(__DIR__ . "/asked", $line, FILE_APPEND);';
        $address = $this->startBuiltIn($this->file(
            'index.php',
            "<?php\nrequire '{$root}/vendor/autoload.php';\n{$log}\nSpindle\\Http\\Sapi::run(__DIR__ . '/app.php');\n",
        ));
        $page = $this->page(self::WITH_FAST_CLOCK, substr($address, 0, -\strlen('page')));
        $page->awaitState('none');
        self::assertSame(
            'No live events on this server',
            $page->evaluate("document.getElementById('state').textContent"),
        );
        $page->click('#add');
        $page->fill('#editor form', ['number' => 'D-AIMA', 'title' => 'Airbus A380', 'serial_number' => 'MSN 038']);
        $page->click('#editor .main');
        $page->awaitRow('D-AIMA');
        self::assertSame(['D-AIMA'], array_column($this->stored(), 0));
        $this->insert('D-AIMB');
        $page->awaitRow('D-AIMB');
        $page->click('#report button[value=title]');
        $page->await("document.getElementById('counts').innerText.replace(/\\s+/g, ' ').includes('Airbus A380 2')");

        $asked = fn(string $request): int => substr_count((string) file_get_contents($this->path('asked')), $request);
        $already = $asked('GET /aircraft?');
        Eventually::holds(
            static fn(): bool => $asked('GET /aircraft?') > $already + 10,
            'it looks again and again',
            30,
        );
        self::assertSame(
            [1, 1],
            [$asked('GET /aircraft/events'), $asked('HEAD /aircraft/events')],
            'and does not try to follow again',
        );
        self::assertSame([], $page->complaints(2));
    }

    public function testItSuitsTheScreenAndEverythingHasAName(): void
    {
        $this->insert('D-AIMA', str_repeat('W', 200));
        $page = $this->page();
        $page->awaitRow('D-AIMA');
        $background = static fn(): string
            => self::text($page->evaluate('getComputedStyle(document.body).backgroundColor'));
        $light = $background();
        $page->call(
            'Emulation.setEmulatedMedia',
            ['features' => [['name' => 'prefers-color-scheme', 'value' => 'dark']]],
        );
        self::assertNotSame($light, $background());
        foreach ([1280, 768, 360] as $width) {
            $page->call(
                'Emulation.setDeviceMetricsOverride',
                ['width' => $width, 'height' => 800, 'deviceScaleFactor' => 1, 'mobile' => $width < 400],
            );
            self::assertSame($width, $page->evaluate('document.documentElement.scrollWidth'), 'nothing sticks out');
        }
        $named = $page->nameless();
        $page->click('#add');
        $page->await("document.getElementById('editor').open");
        self::assertSame([[], []], [$named, $page->nameless()]);
        self::assertSame(
            [],
            $page->evaluate(
                "[...document.querySelectorAll('input')].filter(field => field.labels.length === 0)"
                . '.map(field => field.name)',
            ),
        );
        self::assertSame([], $page->complaints());
    }

    /**
     * Opens the page, on a server of this test unless an address is given.
     *
     * @param string $script JavaScript that runs before the script of the page
     */
    private function page(string $script = '', string $address = ''): AircraftPage
    {
        $program = Chromium::program() ?? self::markTestSkipped('Chromium is not installed');
        if ($address === '') {
            $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '4']), ['--processes', '1']);
            $address = str_replace('tcp://', 'http://', $this->address) . '/';
        }
        mkdir($this->path('browser'));
        $this->browser = new Chromium($program, $this->path('browser'));
        $page = new AircraftPage($this->browser);
        $page->call('Page.addScriptToEvaluateOnNewDocument', ['source' => "{ {$script} }"]);
        $this->browser->open($address);
        $page->await("document.getElementById('place').textContent !== ''");

        return $page;
    }

    /** Inserts a row without an event for it. */
    private function insert(string $number, string $title = 'Airbus A380'): void
    {
        $this->database()->execute(
            'INSERT INTO aircraft (number, title, serial_number, assembly_date)'
            . " VALUES (\$1, \$2, 'MSN 1', '2009-10-13')",
            [$number, $title],
        );
    }

    /** @return list<list<mixed>> number, title, serial number and assembly date of each aircraft in the database */
    private function stored(): array
    {
        return $this->database()
            ->query('SELECT number, title, serial_number, assembly_date::text FROM aircraft ORDER BY number')
            ->allNumeric();
    }

    /** Sends a request as another client. */
    private function ask(string $method, string $target, string $body = ''): ReceivedResponse
    {
        $client = $this->client();
        $response = $client->request(
            $method,
            $target,
            "Connection: close\r\n" . ($body === '' ? '' : "Content-Type: application/json\r\n"),
            $body,
        )->response($method);
        $client->close();

        return $response;
    }

    /** Repeats a change until the page shows it, since the server starts to listen shortly after its first response. */
    private function untilTold(AircraftPage $page, string $text, string $method, string $target, string $body): void
    {
        Eventually::holds(function () use ($page, $text, $method, $target, $body): bool {
            self::assertSame(200, $this->ask($method, $target, $body)->status);

            return $page->tells($text);
        }, "the page tells: {$text}", 20);
    }

    private static function text(mixed $value): string
    {
        self::assertIsString($value);

        return $value;
    }
}
