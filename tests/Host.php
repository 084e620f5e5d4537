<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;
use Symfony\Component\Process\Process;

/** Runs a static method of a test in another PHP process, under conditions that this process can not create. */
final class Host
{
    private const RESULT = "\nresult: ";

    /**
     * @param string         $method    Class::method
     * @param list<mixed>    $arguments arguments of the method, encodable as JSON
     * @param list<string>   $within    program with arguments that starts the rest of its command line
     * @param array<string, string|false> $environment
     * @param list<string>   $options for PHP
     */
    public static function start(
        string $method,
        array $arguments = [],
        array $within = [],
        array $environment = [],
        array $options = [],
    ): Process {
        $process = self::prepare($method, $arguments, $within, $environment, $options);
        $process->start();

        return $process;
    }

    /**
     * @param list<mixed>    $arguments
     * @param list<string>   $within
     * @param array<string, string|false> $environment
     * @param list<string>   $options for PHP
     *
     * @param float          $timeout seconds until the process is killed
     *
     * @return mixed what the method returned
     */
    public static function call(
        string $method,
        array $arguments = [],
        array $within = [],
        array $environment = [],
        array $options = [],
        float $timeout = 60,
    ): mixed {
        $process = self::prepare($method, $arguments, $within, $environment, $options)->setTimeout($timeout);
        $process->run();
        $output = $process->getOutput();
        $at = strrpos($output, self::RESULT);
        if ($at === false || $process->getExitCode() !== 0) {
            Assert::fail("{$method} exited with {$process->getExitCode()}: {$output}{$process->getErrorOutput()}");
        }

        return json_decode(substr($output, $at + \strlen(self::RESULT)), true, flags: \JSON_THROW_ON_ERROR);
    }

    /** Calls the method, in the other process. */
    public static function main(string $method, string $arguments): void
    {
        if (!\is_callable($method)) {
            throw new \InvalidArgumentException("There is no method '{$method}' to call");
        }
        $result = $method(...(array) json_decode($arguments, true, flags: \JSON_THROW_ON_ERROR));
        echo self::RESULT, json_encode($result, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE);
    }

    /**
     * Returns a process that was not started, with the arguments of {@see start()}.
     *
     * @param list<mixed>    $arguments
     * @param list<string>   $within
     * @param array<string, string|false> $environment
     * @param list<string>   $options
     */
    public static function prepare(
        string $method,
        array $arguments = [],
        array $within = [],
        array $environment = [],
        array $options = [],
    ): Process {
        $command = [
            ...$within,
            \PHP_BINARY,
            ...$options,
            __DIR__ . '/host.php',
            $method,
            json_encode($arguments, \JSON_THROW_ON_ERROR),
        ];

        return new Process($command, null, $environment, null, 60);
    }
}
