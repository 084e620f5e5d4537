<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\Assert;
use Spindle\Tests\Http\RunsServe;

final class SpindleServe extends Assert implements Host
{
    use RunsServe;

    public function __construct(string $dsn)
    {
        $app = var_export(\dirname(__DIR__, 3) . '/examples/aircraft/app.php', true);
        $settings = 'putenv(' . var_export("DATABASE_URL={$dsn}", true) . ');'
            . " putenv('AIRCRAFT_WAIT=" . self::WAIT . "');";
        $this->serve("{$settings} return require {$app};", ['--processes', '1'])->setTimeout(null);
    }

    public function address(): string
    {
        return $this->address;
    }

    public function stop(): void
    {
        $this->stopServe();
        $this->removeDirectory();
    }
}
