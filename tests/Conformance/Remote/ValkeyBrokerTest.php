<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\BeforeClass;
use PHPUnit\Framework\Attributes\Group;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Remote\Testing\TemporaryRedisOptions;
use Symfony\Component\Process\ExecutableFinder;

/** The tests of RedisBroker with Valkey, where it is installed. */
#[Group('full')]
final class ValkeyBrokerTest extends RedisBrokerTest
{
    private const PROGRAM = 'valkey-server';

    private static ?TemporaryRedis $valkey = null;

    #[BeforeClass]
    public static function startValkey(): void
    {
        if (self::isInstalled()) {
            self::$valkey = self::valkey();
        }
    }

    #[AfterClass]
    public static function stopValkey(): void
    {
        self::$valkey?->stop();
        self::$valkey = null;
    }

    protected function setUp(): void
    {
        parent::setUp();
        if (!self::isInstalled()) {
            self::markTestSkipped(
                'There is no ' . self::PROGRAM . ' here: apt-get install ' . self::PROGRAM . ' (Debian 13 has it)',
            );
        }
    }

    protected function shared(): TemporaryRedis
    {
        return self::$valkey ?? throw new \LogicException('It was not started');
    }

    protected function start(array $settings = []): TemporaryRedis
    {
        return self::valkey($settings);
    }

    /** @param array<string, string> $settings */
    private static function valkey(array $settings = []): TemporaryRedis
    {
        return TemporaryRedis::start($settings, new TemporaryRedisOptions(binary: self::PROGRAM));
    }

    private static function isInstalled(): bool
    {
        return (new ExecutableFinder())->find(self::PROGRAM) !== null;
    }
}
