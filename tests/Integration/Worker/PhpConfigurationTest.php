<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;
use Symfony\Component\Process\Process;

/** Tests that the PHP of a worker reads the same php.ini files as the caller. */
final class PhpConfigurationTest extends TestCase
{
    use OwnDirectory;

    /** Tools that restart themselves without Xdebug use these options. */
    public function testWithTheOptionsNAndCAWorkerReadsOnlyTheFileOfTheOptionC(): void
    {
        $configuration = '';
        foreach ([php_ini_loaded_file(), ...explode(',', (string) php_ini_scanned_files())] as $file) {
            $path = trim((string) $file);
            $configuration .= $path === '' ? '' : @file_get_contents($path) . "\n";
        }
        $ini = $this->file('own.ini', $configuration);
        $autoloader = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $script = $this->file('script.php', <<<PHP
            <?php
            require {$autoloader};
            \$pool = new Spindle\\Worker\\WorkerPool(1);
            \$files = \$pool->submit(static fn(): array => [php_ini_loaded_file(), php_ini_scanned_files()])->await();
            echo json_encode(\$files, JSON_UNESCAPED_SLASHES);
            PHP);

        $process = new Process([\PHP_BINARY, '-n', '-c', $ini, $script]);
        $process->mustRun();

        self::assertSame(["[\"{$ini}\",false]", ''], [$process->getOutput(), $process->getErrorOutput()]);
    }
}
