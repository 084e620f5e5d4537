<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\Services;
use Aircraft\Settings;
use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\Admin\CombinedStatistics;
use Spindle\Http\Internal\Admin\Metrics;
use Spindle\Http\Response;
use Spindle\Statistics;
use Spindle\Tests\Docs\CodeBlock;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;
use Symfony\Component\Yaml\Yaml;

/** Checks the files of examples/aircraft/deploy without a container engine, systemd as pid 1, or Prometheus. */
final class DeployTest extends TidyTestCase
{
    use OwnDirectory;

    private const PROJECT = __DIR__ . '/../../..';
    private const FOLDER = self::PROJECT . '/examples/aircraft/deploy';

    /** Keywords of PromQL, see https://prometheus.io/docs/prometheus/latest/querying/. */
    private const KEYWORDS = ['by', 'without', 'on', 'ignoring', 'and', 'or', 'unless', 'offset', 'bool'];

    /** Metrics that Prometheus itself adds for each target. */
    private const OF_PROMETHEUS = ['up'];

    private const FUNCTIONS = ['sum', 'max', 'rate', 'increase', 'histogram_quantile', 'time'];

    /** @return iterable<string, array{string}> */
    public static function expressions(): iterable
    {
        $dashboard = self::json('grafana/dashboards/aircraft.json');
        foreach (self::listOf($dashboard['panels'] ?? null) as $panel) {
            foreach (self::listOf($panel['targets'] ?? null) as $number => $target) {
                $title = self::text($panel['title'] ?? null);
                yield "panel {$title} {$number}" => [self::text($target['expr'] ?? null)];
            }
        }
        foreach (self::listOf(self::yaml('alerts.yml')['groups'] ?? null) as $group) {
            foreach (self::listOf($group['rules'] ?? null) as $rule) {
                yield 'alert ' . self::text($rule['alert'] ?? null) => [self::text($rule['expr'] ?? null)];
            }
        }
    }

    #[DataProvider('expressions')]
    public function testWhatIsWatchedIsExported(string $expression): void
    {
        $exported = self::exported();
        preg_match_all('/([a-z_:][\w:]*)(?:\{([^}]*)\})?/', self::withoutDetails($expression), $words, \PREG_SET_ORDER);
        $metrics = array_filter(
            $words,
            static fn(array $word): bool
                => !\in_array($word[1], [...self::KEYWORDS, ...self::FUNCTIONS, ...self::OF_PROMETHEUS], true),
        );
        foreach ($metrics as $metric) {
            self::assertArrayHasKey($metric[1], $exported, $expression);
            preg_match_all('/(\w+)\s*(?:=~|!~|!=|=)/', $metric[2] ?? '', $labels);
            self::assertSame(
                [],
                array_diff($labels[1], $exported[$metric[1]], ['job', 'instance']),
                "{$metric[1]} has these labels",
            );
        }
        preg_match_all('/\bby \(([^)]*)\)/', $expression, $groups);
        $known = array_merge(
            ...array_values(array_map(static fn(array $metric): array => $exported[$metric[1]] ?? [], $metrics)),
        );
        foreach (explode(',', implode(',', $groups[1])) as $label) {
            self::assertContains(trim($label), ['', 'instance', ...$known], $expression);
        }
    }

    public function testTheDashboardAsksTheSourceThatIsProvisioned(): void
    {
        [$source] = self::listOf(self::yaml('grafana/provisioning/datasources/prometheus.yaml')['datasources'] ?? null);
        preg_match_all(
            '/"type": "prometheus",\s*"uid": "([^"]*)"/',
            self::content('grafana/dashboards/aircraft.json'),
            $asked,
        );

        self::assertSame([$source['uid'] ?? null], array_values(array_unique($asked[1])));
        self::assertSame(
            ['prometheus', 9_090],
            [
                parse_url(self::text($source['url'] ?? null), \PHP_URL_HOST),
                parse_url(self::text($source['url'] ?? null), \PHP_URL_PORT),
            ],
        );
        self::assertArrayHasKey('prometheus', self::services());
    }

    public function testEachFileThatAServiceMountsOrIsBuiltOfExists(): void
    {
        foreach (self::services() as $name => $service) {
            foreach (array_filter((array) ($service['volumes'] ?? []), \is_string(...)) as $volume) {
                [$source, $target] = explode(':', $volume);
                if (str_starts_with($source, '.')) {
                    self::assertFileExists(self::FOLDER . "/{$source}", "{$name} has it at {$target}");
                } else {
                    self::assertArrayHasKey(
                        $source,
                        (array) self::yaml('compose.yaml')['volumes'],
                        "{$name} has it at {$target}",
                    );
                }
            }
            if (\is_array($service['build'] ?? null)) {
                $context = self::FOLDER . '/' . self::text($service['build']['context'] ?? null);
                self::assertSame(realpath(self::PROJECT), realpath($context));
                self::assertSame(
                    realpath(self::FOLDER . '/Dockerfile'),
                    realpath("{$context}/" . self::text($service['build']['dockerfile'] ?? null)),
                );
                self::assertMatchesRegularExpression(
                    '/^FROM \S+ AS ' . self::text($service['build']['target'] ?? null) . '$/m',
                    self::content('Dockerfile'),
                );
            }
        }
    }

    public function testWhatAServiceWaitsForIsThereAndCanBe(): void
    {
        $services = self::services();
        foreach ($services as $name => $service) {
            $awaited = (array) ($service['depends_on'] ?? []);
            foreach (array_is_list($awaited) ? array_fill_keys(
                array_filter($awaited, \is_string(...)),
                [],
            ) : $awaited as $other => $how) {
                self::assertArrayHasKey($other, $services, "{$name} waits for it");
                if (\is_array($how) && ($how['condition'] ?? '') === 'service_healthy') {
                    self::assertArrayHasKey(
                        'healthcheck',
                        $services[$other],
                        "{$name} waits for {$other} to be healthy",
                    );
                }
            }
        }
    }

    public function testWhatTheDockerfileCopiesIsNotIgnored(): void
    {
        $dockerfile = self::content('Dockerfile');
        preg_match_all('/^COPY (?!--from)(\S+) \S+$/m', $dockerfile, $copied);
        preg_match_all('/^!(\S+)$/m', self::content('Dockerfile.dockerignore'), $kept);

        self::assertNotSame([], $copied[1]);
        foreach ($copied[1] as $path) {
            self::assertFileExists(self::PROJECT . "/{$path}");
            self::assertNotSame(
                [],
                array_filter(
                    $kept[1],
                    static fn(string $folder): bool
                        => "{$path}/" === "{$folder}/" || str_starts_with($path, "{$folder}/"),
                ),
                $path,
            );
        }
        self::assertStringContainsString(
            'ENTRYPOINT ["php", "bin/spindle", "serve"',
            $dockerfile,
            'Without a shell, which would keep signals to itself',
        );
        self::assertSame(2, substr_count($dockerfile, "\nUSER www-data\n"));
    }

    /** @return iterable<string, array{string}> */
    public static function files(): iterable
    {
        foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator(
            self::FOLDER,
            \FilesystemIterator::SKIP_DOTS,
        )) as $file) {
            \assert($file instanceof \SplFileInfo);
            yield $file->getFilename() => [$file->getPathname()];
        }
    }

    #[DataProvider('files')]
    public function testNoPasswordIsInAFile(string $file): void
    {
        preg_match_all(
            '/(?:PASSWORD|password)["\w]*\s*[:=]\s*(\S+)|:\/\/\w+:([^@\s]+)@/',
            (string) file_get_contents($file),
            $values,
        );
        foreach (array_filter(
            [...$values[1], ...$values[2]],
            static fn(string $value): bool => $value !== '' && $value !== '…',
        ) as $value) {
            self::assertStringStartsWith('${', $value, 'It comes from the environment of whoever starts it');
        }
        $this->addToAssertionCount(1);
    }

    public function testSystemdKnowsAllThatTheUnitSays(): void
    {
        if (!is_executable('/usr/bin/systemd-analyze')) {
            self::markTestSkipped('systemd is not installed');
        }
        // The programs of the unit have other paths on this machine, and systemd-analyze checks that they exist.
        $unit = preg_replace('~^(Exec\w+=)/\S+~m', '$1/bin/true', self::content('aircraft@.service'));
        $verify = new Process(
            ['/usr/bin/systemd-analyze', 'verify', '--man=no', $this->file('aircraft@8085.service', (string) $unit)],
            null,
            null,
            null,
            30,
        );
        $verify->run();
        $said = preg_grep('/aircraft@/', explode("\n", $verify->getErrorOutput()));

        self::assertSame([], array_values($said === false ? [] : $said));
    }

    public function testNobodyIsEndedBeforeItHasAnswered(): void
    {
        $options = new HttpServerOptions();
        preg_match('/^TimeoutStopSec=(\d+)$/m', self::content('aircraft@.service'), $unit);
        preg_match('/^\s+proxy_read_timeout (\d+)s;/m', self::content('nginx-balancer.conf'), $read);
        preg_match('/^\s+keepalive_timeout (\d+)s;/m', self::content('nginx-balancer.conf'), $keep);

        self::assertGreaterThan($options->stopTimeout, (float) ($unit[1] ?? 0));
        self::assertGreaterThan(
            $options->stopTimeout,
            (float) self::text(self::services()['server']['stop_grace_period'] ?? null),
        );
        self::assertGreaterThan($options->handlerTimeout, (float) ($read[1] ?? 0));
        self::assertLessThan($options->idleTimeout, (float) ($keep[1] ?? \INF));
    }

    /** @return iterable<string, array{CodeBlock}> */
    public static function excerpts(): iterable
    {
        foreach (CodeBlock::allIn((string) file_get_contents(self::PROJECT . '/docs/how-to/deploy.md')) as $block) {
            if (\in_array($block->language, ['ini', 'nginx', 'yaml', 'dockerfile'], true)) {
                yield "line {$block->line}" => [$block];
            }
        }
    }

    /** Compares the excerpts on the page with the files. A line "..." stands for any lines. */
    #[DataProvider('excerpts')]
    public function testThePageShowsWhatTheFilesSay(CodeBlock $block): void
    {
        $lines = array_map(
            static fn(string $line): string
                => $line === '...' ? '(?:.*\n)*?' : '\h*' . preg_quote(trim($line), '~') . '\n',
            explode("\n", rtrim($block->content)),
        );
        $pattern = '~^' . implode('', $lines) . '~m';
        $having = array_filter(
            iterator_to_array(self::files()),
            static fn(array $file): bool => preg_match($pattern, (string) file_get_contents($file[0])) === 1,
        );

        self::assertNotSame([], $having, "No file of deploy has this:\n{$block->content}");
    }

    public function testTheIndexOfTheApplicationNamesWhatIsThere(): void
    {
        $page = (string) file_get_contents(self::PROJECT . '/examples/aircraft/README.md');
        preg_match_all('/^\|.*$/m', $page, $rows);
        preg_match_all('/`([\w\/.-]+(?:\.php|\.sql|\/))`/', implode("\n", $rows[0]), $paths);
        preg_match_all('/`(\w+)::(\w+)\(\)`/', implode("\n", $rows[0]), $methods, \PREG_SET_ORDER);

        self::assertGreaterThan(30, \count($paths[1]));
        foreach ($paths[1] as $path) {
            self::assertFileExists(self::PROJECT . "/examples/aircraft/{$path}");
        }
        foreach ($methods as [, $class, $method]) {
            self::assertTrue(
                method_exists("Aircraft\\{$class}", $method) || method_exists("Aircraft\\Http\\{$class}", $method),
                "{$class}::{$method}()",
            );
        }
    }

    /** Removes durations, strings and grouping labels. */
    private static function withoutDetails(string $expression): string
    {
        return (string) preg_replace(['/"[^"]*"/', '/\[[^\]]*\]/', '/\bby \([^)]*\)/'], ['""', '', ''], $expression);
    }

    /** @return array<string, list<string>> names of labels, by metric, of a server process after a request */
    private static function exported(): array
    {
        $application = Services::ofServer(new Settings('postgres://nobody@localhost/nothing'))->application();
        $statistics = (new HttpServer(static fn(): Response => new Response(), new HttpServerOptions()))->statistics();
        $pools = array_map(static fn(Statistics $pool): array => $pool->statistics(), $application->statistics);
        $figures = [
            'answeredRequests' => [200 => 1],
            'refusedRequests' => [400 => 1],
            'routes' => ['/aircraft' => [1, 0.1, 0]],
            'pools' => $pools,
        ] + get_object_vars($statistics);
        $text = Metrics::of(new CombinedStatistics([new $statistics(...$figures)]));
        $exported = [];
        preg_match_all('/^(\w+)(?:\{([^}]*)\})? \S+$/m', $text, $samples, \PREG_SET_ORDER);
        foreach ($samples as $sample) {
            preg_match_all('/(\w+)="/', $sample[2] ?? '', $label);
            $exported[$sample[1]] = $label[1];
        }

        return $exported;
    }

    /** @return array<array-key, array<array-key, mixed>> */
    private static function services(): array
    {
        return array_filter((array) (self::yaml('compose.yaml')['services'] ?? []), \is_array(...));
    }

    /** @return array<array-key, mixed> */
    private static function yaml(string $file): array
    {
        $parsed = Yaml::parse(self::content($file));
        self::assertIsArray($parsed);

        return $parsed;
    }

    /** @return array<array-key, mixed> */
    private static function json(string $file): array
    {
        $parsed = json_decode(self::content($file), true, flags: \JSON_THROW_ON_ERROR);
        self::assertIsArray($parsed);

        return $parsed;
    }

    private static function content(string $file): string
    {
        return (string) file_get_contents(self::FOLDER . "/{$file}");
    }

    /** @return list<array<array-key, mixed>> */
    private static function listOf(mixed $value): array
    {
        self::assertIsArray($value);

        return array_values(array_filter($value, \is_array(...)));
    }

    private static function text(mixed $value): string
    {
        self::assertIsString($value);

        return $value;
    }
}
