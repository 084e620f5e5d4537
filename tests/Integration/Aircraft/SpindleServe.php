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
        $this->serve('putenv(' . var_export("DATABASE_URL={$dsn}", true) . "); return require {$app};", ['--processes', '1'])->setTimeout(null);
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
