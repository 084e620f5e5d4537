<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use Spindle\Bench\Http\Fpm;
use Spindle\Bench\Support\Program;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** Runs the benchmark of the aircraft application, and checks its output and files, but no speed. */
trait RunsAircraftBench
{
    use EndsInTime;
    use LeavesNothing;
    use OwnDirectory;
    use ReadsSeries;

    /**
     * @param list<string>                $options
     * @param array<string, list<string>> $tables the rows with figures by title
     */
    private function assertPrintsTables(array $options, array $tables): Process
    {
        self::needsWrk();
        [$json, $html] = [$this->path('aircraft.json'), $this->path('aircraft.html')];
        $process = $this->bench('--rounds', '1', '--json', $json, '--html', $html, ...$options);
        $process->run();

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        foreach ($tables as $title => $labels) {
            foreach ($labels as $label) {
                $row = "/^{$title}.*\n\n(?:\|.*\n)*\| {$label} +\| +-?[\d,.]+ \|/m";
                self::assertMatchesRegularExpression($row, $process->getOutput());
            }
        }
        self::rightSeries($json);
        self::assertIsAReport((string) file_get_contents($html), array_keys($tables));
        self::assertSame(['aircraft.html', 'aircraft.json'], Text::names($this->path()));
        self::assertSame([], Processes::mentioning($this->path()));

        return $process;
    }

    /** @return list<string> rows of nginx with PHP-FPM: the same handlers, the same preloaded, and plain PHP */
    private static function fpmRows(): array
    {
        $same = 'nginx \+ PHP-FPM, the same handlers';

        $rows = ["{$same}, \d+ workers", "{$same}, preloaded, \d+ workers", 'nginx \+ PHP-FPM, plain PHP, \d+ workers'];

        return Fpm::missing() === null ? $rows : [];
    }

    protected function deadline(): int
    {
        return 150;
    }

    private static function needsWrk(): void
    {
        if (Program::find('wrk') === null) {
            self::markTestSkipped('wrk is not installed');
        }
    }

    /** @param list<string> $titles patterns */
    private static function assertIsAReport(string $html, array $titles): void
    {
        $document = new \DOMDocument();
        self::assertTrue($document->loadXML(substr($html, \strlen('<!DOCTYPE html>'))), 'it is well-formed');
        self::assertGreaterThan(0, $document->getElementsByTagName('svg')->length);
        self::assertSame(0, preg_match('~<script|<link|<img|\b(?:src|href)=|@import|url\(~i', $html));
        preg_match_all('~https?://[^"\s<]+~', $html, $addresses);
        self::assertSame(['http://www.w3.org/2000/svg'], array_values(array_unique($addresses[0])));
        foreach ($titles as $title) {
            self::assertMatchesRegularExpression("~<h2>{$title}~", html_entity_decode($html, \ENT_QUOTES | \ENT_XML1));
        }
    }

    /** Runs the benchmark with its temporary files in the test's directory. */
    private function bench(string ...$arguments): Process
    {
        $command = [\PHP_BINARY, \dirname(__DIR__, 3) . '/bench/aircraft.php', ...$arguments];

        return new Process($command, null, ['TMPDIR' => $this->path()] + getenv(), timeout: 140.0);
    }
}
