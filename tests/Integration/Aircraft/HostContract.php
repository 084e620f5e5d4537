<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use Aircraft\Fleet;
use Aircraft\Migrations;
use PgSql\Connection;
use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\BeforeClass;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Postgres\PostgresConnection;
use Spindle\Tests\Aircraft\Description;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ReceivedResponse;
use Spindle\Tests\JsonMessages;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

/**
 * The part of the contract that a server in front of the application can break: bodies, headers, methods, paths, the
 * database, fibers, commands and workers. All tests of a class share a server and a table. When a test begins, D-AIMA
 * is the only aircraft.
 */
abstract class HostContract extends TidyTestCase
{
    use UsesCluster;

    protected const JSON = ['Content-Type' => 'application/json'];
    protected const CSV = ['Content-Type' => 'text/csv'];

    protected const HEAD = "number,title,serial_number,assembly_date\n";

    private static string $databaseName = '';
    private static ?Host $host = null;
    private static ?Connection $connection = null;
    private static ?Description $description = null;

    /** Keys of examples of errors that depend on how the server handles the body, the query or the path. */
    private const OF_SERVERS = '/ (?:413|415|501) | (?:syntax|empty|list|unknown)$/D';

    abstract protected static function start(string $dsn): Host;

    /** @return bool whether the server answers with an error of this status; not every server has each */
    abstract protected static function refusesWith(int $status): bool;

    /** @param string $refusal key of {@see Description::refusals()} */
    protected static function isTried(string $refusal): bool
    {
        return preg_match(self::OF_SERVERS, $refusal) === 1;
    }

    #[BeforeClass]
    public static function startHost(): void
    {
        self::$databaseName = Cluster::newDatabase();
        $database = PostgresConnection::connect(self::dsn());
        (new Migrations($database))->run();
        $database->close();
        $connection = pg_connect(self::dsn(), \PGSQL_CONNECT_FORCE_NEW);
        self::assertNotFalse($connection, 'The cluster does not answer');
        self::$connection = $connection;
        self::$host = static::start(self::dsn());
    }

    #[AfterClass]
    public static function stopHost(): void
    {
        self::$host?->stop();
        [self::$host, self::$connection, self::$description] = [null, null, null];
        Cluster::ask('DROP DATABASE ' . self::$databaseName . ' WITH (FORCE)');
    }

    #[Before]
    protected function beginWithOne(): void
    {
        self::sql('DELETE FROM aircraft');
        self::sql("INSERT INTO aircraft VALUES ('D-AIMA', 'Airbus A380-841', 'MSN 038', '2010-04-30')");
    }

    /** @return \Generator<string, array{string, string, array<string, string>, string, int, mixed}> */
    public static function refusals(): \Generator
    {
        foreach (self::description()->refusals() as $name => $refusal) {
            if (static::refusesWith($refusal[4]) && static::isTried($name)) {
                yield $name => $refusal;
            }
        }
    }

    /** @param array<string, string> $headers */
    #[DataProvider('refusals')]
    public function testBadInputIsRefusedAsDescribedAndChangesNothing(
        string $method,
        string $target,
        array $headers,
        string $body,
        int $status,
        mixed $problem,
    ): void {
        $before = self::sql('SELECT * FROM aircraft');

        $answer = $this->ask($method, $target, $headers, $body);

        self::assertSame(
            [$status, 'application/problem+json', $problem],
            [
                $answer->status,
                $answer->header('content-type'),
                json_decode(JsonMessages::withoutLocation($answer->body), true, flags: \JSON_THROW_ON_ERROR),
            ],
        );
        self::assertSame($before, self::sql('SELECT * FROM aircraft'));
    }

    public function testOneIsAddedReadChangedAndDeleted(): void
    {
        $fields = [
            'number' => 'D-AIMB',
            'title' => 'Airbus „A380“ \\ 飛行機',
            'serial_number' => "0'; --",
            'assembly_date' => '2010-06-30',
        ];
        $added = $this->ask('POST', '/aircraft', self::JSON, self::json($fields));
        $read = $this->ask('GET', '/aircraft/D-AIMB');
        self::assertSame([201, '/aircraft/D-AIMB', 200], [$added->status, $added->header('location'), $read->status]);
        self::assertSame($fields, array_intersect_key((array) $read->json(), $fields));
        self::assertSame($added->body, $read->body);

        $changed = $this->ask(
            'PUT',
            '/aircraft/D-AIMB',
            self::JSON,
            self::json(['number' => 'D-AIMB', 'title' => '0', 'serial_number' => '0']),
        );
        self::assertSame([200, $changed->body], [$changed->status, $this->ask('GET', '/aircraft/D-AIMB')->body]);
        self::assertEquals(
            ['title' => '0', 'serial_number' => '0', 'assembly_date' => null] + (array) $read->json(),
            $changed->json(),
        );

        self::assertSame(204, $this->ask('DELETE', '/aircraft/D-AIMB')->status);
        self::assertSame(
            [404, 404],
            [$this->ask('GET', '/aircraft/D-AIMB')->status, $this->ask('DELETE', '/aircraft/D-AIMB')->status],
        );
        self::assertSame(200, $this->ask('GET', '/aircraft/D-AIMA')->status);
    }

    public function testAChangeOfAnotherIsNotUndoneByWhoeverHasReadItBefore(): void
    {
        $read = (string) $this->ask('GET', '/aircraft/D-AIMA')->header('etag');
        $fields = self::json(['title' => 'Mine', 'serial_number' => '1']);
        self::assertMatchesRegularExpression('/^"[^"]+"$/D', $read);
        $changed = $this->ask('PUT', '/aircraft/D-AIMA', ['If-Match' => "\"another\", {$read}"] + self::JSON, $fields);
        self::assertSame(200, $changed->status);
        self::assertNotSame($read, $changed->header('etag'));
        self::assertSame($changed->header('etag'), $this->ask('GET', '/aircraft/D-AIMA')->header('etag'));
        foreach ([$read, "W/{$changed->header('etag')}", 'nonsense'] as $stale) {
            self::assertSame(
                412,
                $this->ask('PUT', '/aircraft/D-AIMA', ['If-Match' => $stale] + self::JSON, $fields)->status,
            );
            self::assertSame(412, $this->ask('DELETE', '/aircraft/D-AIMA', ['If-Match' => $stale])->status);
        }
        self::assertSame(404, $this->ask('DELETE', '/aircraft/D-AIMZ', ['If-Match' => $read])->status);
        self::assertSame(200, $this->ask('PUT', '/aircraft/D-AIMA', ['If-Match' => '*'] + self::JSON, $fields)->status);
        $current = (string) $this->ask('GET', '/aircraft/D-AIMA')->header('etag');
        self::assertSame(204, $this->ask('DELETE', '/aircraft/D-AIMA', ['If-Match' => $current])->status);
        $added = $this->ask(
            'POST',
            '/aircraft',
            self::JSON,
            self::json(['number' => 'D-AIMC', 'title' => 'a', 'serial_number' => '1']),
        );
        self::assertSame($added->header('etag'), $this->ask('GET', '/aircraft/D-AIMC')->header('etag'));
    }

    public function testBrowsersRunNothingThatIsNotThePages(): void
    {
        foreach ([
            '/aircraft',
            '/aircraft/D-AIMA',
            '/aircraft/D-AIMA/certificate',
            '/aircraft/D-AIMZ',
            '/nothing',
            '/openapi.json',
        ] as $target) {
            $answer = $this->ask('GET', $target);
            self::assertSame('nosniff', $answer->header('x-content-type-options'), $target);
            self::assertStringStartsWith(
                "default-src 'none';",
                (string) $answer->header('content-security-policy'),
                $target,
            );
        }
    }

    public function testASpreadsheetComputesNothingOfAnExport(): void
    {
        self::sql("UPDATE aircraft SET title = '=1+1', serial_number = '@SUM(A1)'");
        self::assertSame(
            self::HEAD . "D-AIMA,'=1+1,'@SUM(A1),2010-04-30\n",
            $this->ask('GET', '/aircraft/export')->body,
        );
        self::assertSame('=1+1', ((array) $this->ask('GET', '/aircraft/D-AIMA')->json())['title']);
    }

    public function testACertificateIsShownAsAWhole(): void
    {
        $svg = $this->ask('GET', '/aircraft/D-AIMA/certificate')->body;
        self::assertSame(1, preg_match('/viewBox="(-?\d+) (-?\d+) (\d+) (\d+)"/', $svg, $box));
        self::assertSame(1, preg_match('/ d="M([^"]+)"/', $svg, $path));
        [$left, $top, $width, $height] = array_map(intval(...), \array_slice($box, 1));
        foreach (array_chunk(array_map(floatval(...), explode(' ', trim($path[1]))), 2) as [$x, $y]) {
            if ($x < $left || $x > $left + $width || $y < $top || $y > $top + $height) {
                self::fail("{$x} {$y} is outside of {$box[0]}");
            }
        }
    }

    public function testAFileComesOutAsItWentIn(): void
    {
        self::sql('TRUNCATE aircraft');
        $csv = self::HEAD
            . "A-0,\"comma, \"\"quotes\"\"\",back\\slash,\nA-1,Grüße ✈ 飛行機, 1 ,0001-01-01\nA-2,0,'; --,9999-12-31\n"
            . str_replace(self::HEAD, '', implode(iterator_to_array(Fleet::csv(3_000), false)));

        $imported = $this->ask('POST', '/aircraft/import', self::CSV, $csv);
        $exported = $this->ask('GET', '/aircraft/export');

        self::assertSame([200, ['added' => 3_003]], [$imported->status, $imported->json()]);
        self::assertSame(
            [200, 'attachment; filename="aircraft.csv"', $csv],
            [$exported->status, $exported->header('content-disposition'), $exported->body],
        );
    }

    public function testACertificateIsADocumentWithWhatWasGiven(): void
    {
        $title = '<script>&amp;"\'</text> „é“';
        $this->ask(
            'PUT',
            '/aircraft/D-AIMA',
            self::JSON,
            self::json(['title' => $title, 'serial_number' => ']]>', 'assembly_date' => '2010-04-30']),
        );
        $answer = $this->ask('GET', '/aircraft/D-AIMA/certificate');
        $document = new \DOMDocument();

        self::assertSame([200, 'image/svg+xml'], [$answer->status, $answer->header('content-type')]);
        self::assertTrue($document->loadXML($answer->body, \LIBXML_NONET));
        $texts = array_map(
            static fn(\DOMNode $text): string => $text->textContent,
            iterator_to_array($document->getElementsByTagName('text'), false),
        );
        self::assertSame(
            ['Certificate of registration', 'D-AIMA', $title, 'serial number ]]>', 'assembled on 30 April 2010'],
            \array_slice($texts, 0, 5),
        );
        self::assertSame('http://www.w3.org/2000/svg', $document->documentElement?->namespaceURI);
    }

    public function testReportsCountWhatIsThere(): void
    {
        self::sql('TRUNCATE aircraft');
        $titles = [
            'back\\slash' => 4,
            '"quoted", with commas' => 3,
            'Grüße ✈' => 2,
            ' begins with a space' => 1,
            '\\N' => 1,
            'b' => 1,
        ];
        $rows = [];
        foreach ($titles as $title => $count) {
            for ($i = 0; $i < $count; ++$i) {
                $rows[] = 'A'
                    . \count($rows)
                    . ',"'
                    . str_replace('"', '""', $title)
                    . '",1,'
                    . ($i === 0 ? '' : "200{$i}-02-03");
            }
        }
        self::assertSame(
            200,
            $this->ask('POST', '/aircraft/import', self::CSV, self::HEAD . implode("\n", $rows))->status,
        );

        $byTitle = $this->ask('POST', '/reports', self::JSON, '{"by":"title"}');
        $byYear = $this->ask('POST', '/reports', self::JSON, '{"by":"assembly_year","top":2}');

        $counts = array_map(
            static fn(string $title, int $count): array => ['value' => $title, 'count' => $count],
            array_keys($titles),
            $titles,
        );
        self::assertSame(['by' => 'title', 'counts' => $counts], $byTitle->json());
        self::assertSame(
            [
                'by' => 'assembly_year',
                'counts' => [['value' => 'unknown', 'count' => 6], ['value' => '2001', 'count' => 3]],
            ],
            $byYear->json(),
        );
        self::sql('TRUNCATE aircraft');
        self::assertSame(
            ['by' => 'title', 'counts' => []],
            $this->ask('POST', '/reports', self::JSON, '{"by":"title"}')->json(),
        );
    }

    public function testSeveralSleepSideBySide(): void
    {
        $began = hrtime(true);
        $slept = $this->ask('GET', '/sleep?n=3')->json();

        self::assertLessThan(2.9, (hrtime(true) - $began) / 1e9);
        self::assertIsArray($slept);
        self::assertSame([1, 1, 1], array_column($slept, 'affected'));
        self::assertCount(3, array_unique(array_filter(array_column($slept, 'uuid'), \is_string(...))));
    }

    public function testHeadIsAnsweredWithoutABody(): void
    {
        foreach (['/aircraft', '/aircraft/D-AIMA', '/aircraft/export', '/openapi.json'] as $target) {
            $head = $this->ask('HEAD', $target);
            self::assertSame([200, ''], [$head->status, $head->body], $target);
        }
        self::assertSame(404, $this->ask('HEAD', '/aircraft/D-NONE')->status);
    }

    public function testWhatIsNotThereIsNotFound(): void
    {
        foreach ([
            '/nothing',
            '/aircraft/',
            '/aircraft/D-AIMA/',
            '/aircraft/D%2FAIMA',
            '/%FF',
            '/composer.json',
            '/app.php',
            '/public/index.php',
            '/src/Services.php',
        ] as $path) {
            $answer = $this->ask('GET', $path);
            self::assertSame([404, "There is nothing at {$path}"], [$answer->status, $this->detail($answer)]);
        }
        self::assertSame(404, $this->ask('POST', '/nothing', self::JSON, '{}')->status);
        self::assertSame(404, $this->ask('POST', '/', self::JSON, '{}')->status);
    }

    public function testOtherMethodsAreToldWhichArePossible(): void
    {
        $allowed = [
            'PATCH /aircraft/D-AIMA' => 'GET, HEAD, PUT, DELETE',
            'DELETE /aircraft' => 'GET, HEAD, POST',
            'GET /reports' => 'POST',
            'POST /openapi.json' => 'GET, HEAD',
            'GET /aircraft/import' => 'POST',
            'DELETE /aircraft/export' => 'GET, HEAD',
            'POST /aircraft/events' => 'GET, HEAD',
        ];
        foreach ($allowed as $what => $methods) {
            [$method, $path] = explode(' ', $what);
            $answer = $this->ask($method, $path);
            self::assertSame(405, $answer->status, $what);
            self::assertSame($methods, $answer->header('allow'), $what);
        }
    }

    public function testTheDescriptionIsServed(): void
    {
        $answer = $this->ask('GET', '/openapi.json');

        self::assertSame(
            [200, 'application/json', (string) file_get_contents(Description::FILE)],
            [$answer->status, $answer->header('content-type'), $answer->body],
        );
    }

    public function testThePageIsServed(): void
    {
        foreach ([
            '/' => 'text/html',
            '/aircraft.js' => 'text/javascript',
            '/aircraft.css' => 'text/css',
            '/aircraft.svg' => 'image/svg+xml',
        ] as $target => $type) {
            $answer = $this->send('GET', $target);
            self::assertSame(
                [200, $type],
                [$answer->status, explode(';', (string) $answer->header('content-type'))[0]],
                $target,
            );
        }
    }

    public function testWhatNobodyHasThoughtOfTellsNothing(): void
    {
        self::sql('ALTER TABLE aircraft RENAME TO hidden');
        try {
            foreach (['/aircraft', '/aircraft/D-AIMA', '/aircraft/D-AIMA/certificate', '/aircraft/export'] as $target) {
                $json = $this->ask('GET', $target, ['Accept' => 'application/json']);
                $any = $this->ask('GET', $target, ['Accept' => '*/*']);
                self::assertSame(
                    [500, 'application/problem+json', ['title' => 'Internal Server Error', 'status' => 500]],
                    [$json->status, $json->header('content-type'), $json->json()],
                    $target,
                );
                self::assertSame([500, "500 Internal Server Error\n"], [$any->status, $any->body], $target);
            }
        } finally {
            self::sql('ALTER TABLE hidden RENAME TO aircraft');
        }
        self::assertSame(200, $this->ask('GET', '/aircraft')->status);
    }

    public function testWithoutADatabaseItSaysWhenToComeAgain(): void
    {
        self::assertSame(200, $this->ask('GET', '/aircraft')->status);
        $name = self::$databaseName;
        Cluster::ask("ALTER DATABASE {$name} ALLOW_CONNECTIONS false");
        self::sql(<<<'SQL'
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
            SQL);
        try {
            foreach (['GET /aircraft', 'GET /aircraft/export', 'POST /aircraft/import', 'POST /reports'] as $what) {
                [$method, $target] = explode(' ', $what);
                $body = match ($target) {
                    '/reports' => [self::JSON, '{"by":"title"}'],
                    '/aircraft/import' => [self::CSV, self::HEAD],
                    default => [[], ''],
                };
                $answer = $this->ask($method, $target, ...$body);
                self::assertSame([503, '1'], [$answer->status, $answer->header('retry-after')], $what);
            }
        } finally {
            Cluster::ask("ALTER DATABASE {$name} ALLOW_CONNECTIONS true");
        }
        Eventually::holds(fn(): bool => $this->ask('GET', '/aircraft/D-AIMA')->status === 200, 'it goes on');
    }

    /**
     * Sends a request, and returns the response if it is as described.
     *
     * @param array<string, string> $headers
     */
    final protected function ask(
        string $method,
        string $target,
        array $headers = [],
        string $body = '',
    ): ReceivedResponse {
        $response = $this->send($method, $target, $headers, $body);
        self::assertNull(
            self::description()->fault($method, $target, $response),
            "{$method} {$target}: {$response->head}\n{$response->body}",
        );

        return $response;
    }

    /** @param array<string, string> $headers */
    final protected function send(
        string $method,
        string $target,
        array $headers = [],
        string $body = '',
    ): ReceivedResponse {
        $fields = '';
        foreach ($headers + ['Connection' => 'close'] as $name => $value) {
            $fields .= "{$name}: {$value}\r\n";
        }
        $client = RawClient::connect(self::address());
        try {
            return $client->request($method, $target, $fields, $body)->response($method);
        } finally {
            $client->close();
        }
    }

    final protected static function address(): string
    {
        return self::$host?->address() ?? throw new \LogicException('There is no server');
    }

    /** @return list<array<array-key, string|null>> */
    final protected static function sql(string $sql): array
    {
        $connection = self::$connection ?? throw new \LogicException('There is no connection');
        $result = pg_query($connection, $sql);

        /** @var list<array<array-key, string|null>> $rows */
        $rows = $result === false ? throw new \RuntimeException(pg_last_error($connection)) : pg_fetch_all($result);

        return $rows;
    }

    private static function dsn(): string
    {
        return Cluster::shared()->dsn(dbname: self::$databaseName);
    }

    private static function description(): Description
    {
        return self::$description ??= new Description();
    }

    final protected static function json(mixed $value): string
    {
        return json_encode($value, \JSON_THROW_ON_ERROR);
    }

    final protected function detail(ReceivedResponse $answer): mixed
    {
        return ((array) $answer->json())['detail'] ?? null;
    }
}
