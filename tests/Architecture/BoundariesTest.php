<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;
use Symfony\Component\Process\Process;

/** Shows that PHPStan reports violations of the boundaries of src/. */
final class BoundariesTest extends TestCase
{
    /** Namespaces that may not use a class, and namespaces that may, by the class. */
    private const USES = [
        'Spindle\Command\Internal\Frame' => [
            ['Spindle', 'Spindle\Internal', 'Spindle\Worker', 'Spindle\Remote', 'Spindle\Cli', 'Spindle\Bench'],
            ['Spindle\Command', 'Spindle\Command\Internal\Launcher', 'Spindle\Tests\Unit'],
        ],
        'Spindle\Command\Pool' => [
            ['Spindle', 'Spindle\Internal', 'Spindle\Worker', 'Spindle\Postgres\Internal', 'Spindle\Http'],
            ['Spindle\Command\Internal', 'Spindle\Remote', 'Spindle\Cli', 'Spindle\Bench'],
        ],
        'Spindle\Postgres\Pool' => [
            ['Spindle', 'Spindle\Internal', 'Spindle\Command', 'Spindle\Remote'],
            ['Spindle\Postgres', 'Spindle\Cli'],
        ],
        'Spindle\Cli\Program' => [
            ['Spindle', 'Spindle\Internal', 'Spindle\Command', 'Spindle\Remote'],
            ['Spindle\Cli\Internal'],
        ],
        'Spindle\Cli\Internal\Run\Program' => [
            ['Spindle', 'Spindle\Command', 'Spindle\Cli\Internal', 'Spindle\Cli\Internal\Work'],
            ['Spindle\Cli', 'Spindle\Cli\Internal\Run', 'Spindle\Cli\Internal\Run\Input'],
        ],
        'Spindle\Internal\Clock' => [
            [],
            ['Spindle', 'Spindle\Command', 'Spindle\Http\Internal'],
        ],
        'Spindle\Tests\Scale' => [
            ['Spindle', 'Spindle\Command', 'Spindle\Internal'],
            ['Spindle\Bench'],
        ],
    ];

    public function testAUseThatIsNotAllowedIsReportedAndNoOther(): void
    {
        $folder = sys_get_temp_dir() . '/spindle-boundaries-' . bin2hex(random_bytes(6));
        mkdir($folder);
        $expected = self::writeUses($folder);

        $report = self::analyse($folder);
        (new Process(['rm', '-rf', $folder]))->mustRun();

        preg_match_all('/^\S+:\d+:(\S+) should not depend on (\S+)$/m', $report, $violations, PREG_SET_ORDER);
        $reported = array_values(array_unique(array_map(
            static fn(array $violation): string => "{$violation[1]} uses {$violation[2]}",
            $violations,
        )));
        sort($reported);
        self::assertSame($expected, $reported, $report);
    }

    /** @return list<string> violations that PHPStan has to report */
    private static function writeUses(string $folder): array
    {
        $violations = [];
        foreach (self::USES as $used => [$forbidden, $allowed]) {
            self::declare($folder, $used, '');
            foreach ([...$forbidden, ...$allowed] as $namespace) {
                $user = "{$namespace}\\Uses" . strtr($used, ['\\' => '']);
                self::declare($folder, $user, "public function use(\\{$used} \$used): void {}");
                if (\in_array($namespace, $forbidden, true)) {
                    $violations[] = "{$user} uses {$used}";
                }
            }
        }
        sort($violations);

        return $violations;
    }

    private static function declare(string $folder, string $class, string $body): void
    {
        [$namespace, $name] = [
            substr($class, 0, (int) strrpos($class, '\\')),
            substr((string) strrchr($class, '\\'), 1),
        ];
        file_put_contents(
            "{$folder}/" . strtr($class, '\\', '.') . '.php',
            "<?php\nnamespace {$namespace};\nfinal class {$name} { {$body} }\n",
        );
    }

    private static function analyse(string $folder): string
    {
        $phpstan = new Process(
            [
                PHP_BINARY, 'vendor/bin/phpstan', 'analyse', '--no-progress', '--error-format=raw',
                '-c', __DIR__ . '/boundaries.neon', $folder,
            ],
            \dirname(__DIR__, 2),
        );
        $phpstan->run();

        return $phpstan->getOutput() . $phpstan->getErrorOutput();
    }
}
