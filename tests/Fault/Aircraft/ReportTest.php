<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Aircraft\ReportBy;
use Aircraft\Reports;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\CommandFailedException;
use Spindle\Command\CommandPool;
use Spindle\Postgres\PostgresLink;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

final class ReportTest extends TidyTestCase
{
    use OwnDirectory;

    #[TestWith(['sort'])]
    #[TestWith(['uniq'])]
    #[TestWith(['sed'])]
    public function testAReportOfWhichAProgramFailsIsNone(string $program): void
    {
        $database = self::createStub(PostgresLink::class);
        $database->method('copyTo')->willReturnCallback(static function (): \Generator {
            yield "ATR 72\n";
        });
        chmod($this->file($program, "#!/bin/sh\nexit 2\n"), 0o755);
        $path = (string) getenv('PATH');
        putenv("PATH={$this->path()}:{$path}");
        try {
            $this->expectException(CommandFailedException::class);
            (new Reports($database, new CommandPool(concurrency: 1)))->count(ReportBy::Title, 10);
        } finally {
            putenv("PATH={$path}");
        }
    }
}
