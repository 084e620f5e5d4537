<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\ErrorLog;
use Aircraft\Settings;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;

final class SettingsTest extends TestCase
{
    use OwnDirectory;

    private const VARIABLES = ['DATABASE_URL', 'AIRCRAFT_CONNECTIONS', 'AIRCRAFT_EVENTS', 'AIRCRAFT_WAIT'];

    #[After]
    protected function forgetVariables(): void
    {
        array_map(putenv(...), self::VARIABLES);
    }

    public function testEachHasADefault(): void
    {
        array_map(static fn(string $name): bool => putenv("{$name}="), self::VARIABLES);

        self::assertEquals(new Settings('', 10, true, 5, ''), Settings::ofEnvironment());
    }

    public function testTheyComeFromTheEnvironment(): void
    {
        putenv('DATABASE_URL=postgres://app:secret@db.test/aircraft');
        putenv('AIRCRAFT_CONNECTIONS=3');
        putenv('AIRCRAFT_EVENTS=off');
        putenv('AIRCRAFT_WAIT=20');
        $settings = Settings::ofEnvironment();

        self::assertSame(
            ['postgres://app:secret@db.test/aircraft', 3, false, 20],
            [$settings->database, $settings->connections, $settings->announces, $settings->wait],
        );
        self::assertStringNotContainsString('secret', print_r($settings, true));
    }

    #[TestWith(['AIRCRAFT_CONNECTIONS', '0'])]
    #[TestWith(['AIRCRAFT_CONNECTIONS', '-1'])]
    #[TestWith(['AIRCRAFT_CONNECTIONS', 'ten'])]
    #[TestWith(['AIRCRAFT_CONNECTIONS', '1.5'])]
    #[TestWith(['AIRCRAFT_WAIT', '0'])]
    #[TestWith(['AIRCRAFT_EVENTS', 'true'])]
    public function testWhatIsWrongIsNamed(string $name, string $value): void
    {
        putenv("{$name}={$value}");

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessageMatches("/^{$name} must be .*, not \"{$value}\"$/D");

        Settings::ofEnvironment();
    }

    public function testTheLogHasALineOfEachWithTheException(): void
    {
        $before = ini_set('error_log', $this->path('log'));
        try {
            (new ErrorLog())->error(
                '{method} {target} failed, {unknown} {exception}',
                [
                    'method' => 'GET',
                    'target' => "/\n",
                    'exception' => new \LogicException("two\nlines", 7),
                    'list' => [],
                ],
            );
            (new ErrorLog())->info('nothing');
        } finally {
            ini_set('error_log', (string) $before);
        }
        $lines = file($this->path('log'), \FILE_IGNORE_NEW_LINES);

        self::assertIsArray($lines);
        self::assertCount(2, $lines);
        self::assertStringContainsString(
            'GET /\n failed, {unknown} {exception}: LogicException: two\nlines in ' . __FILE__,
            $lines[0],
        );
        self::assertStringEndsWith('] nothing', $lines[1]);
    }
}
