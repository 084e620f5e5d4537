<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Process\Process;

#[RequiresPhpExtension('pcntl')]
final class AlarmTest extends TestCase
{
    private string $file = '';

    protected function tearDown(): void
    {
        @unlink($this->file);
    }

    public function testAFailureIsReportedAlthoughItsDescriptionTakesLong(): void
    {
        $this->file = sys_get_temp_dir() . '/SlowDescription' . bin2hex(random_bytes(6)) . 'Test.php';
        $class = basename($this->file, '.php');
        file_put_contents($this->file, <<<PHP
            <?php
            final class {$class} extends PHPUnit\\Framework\\TestCase
            {
                public function testADifferenceOfManyObjects(): void
                {
                    \$objects = array_map(static fn(int \$i) => new RuntimeException("object {\$i}"), range(1, 5000));
                    Spindle\\Tests\\Alarm::start(1);
                    self::assertSame([], \$objects);
                }
            }
            PHP);
        $phpunit = \dirname(__DIR__, 2) . '/vendor/bin/phpunit';
        $process = new Process([\PHP_BINARY, '-d', 'memory_limit=1G', $phpunit, $this->file], \dirname(__DIR__, 2));
        $process->run();

        self::assertStringContainsString('Failures: 1', substr($process->getOutput(), -1000));
        self::assertSame(1, $process->getExitCode());
    }
}
