<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use Spindle\Internal\CpuCount;
use Spindle\Tests\Scale;

/** Selection of tests, and the number of classes that run at once. */
final readonly class Options
{
    private const MAX_SHARDS = 64;

    /**
     * @param list<string> $paths test files or folders; empty for all suites of phpunit.xml.dist
     * @param bool $repeatsFailed whether failed classes run again, one after the other, at the end
     */
    private function __construct(
        public array $paths,
        public bool $full,
        public int $shards,
        public bool $slowest,
        public bool $repeatsFailed,
    ) {}

    /**
     * @param list<string> $arguments
     *
     * @throws RunnerException
     */
    public static function fromArguments(array $arguments): self
    {
        $paths = [];
        $full = Scale::isFull();
        $shards = (new CpuCount())->usable() + 2; // more than the CPUs, because tests also wait
        $slowest = $repeatsFailed = false;
        while (($argument = array_shift($arguments)) !== null) {
            if ($argument === '--full') {
                $full = true;
            } elseif ($argument === '--slowest') {
                $slowest = true;
            } elseif ($argument === '--repeat-failed') {
                $repeatsFailed = true;
            } elseif ($argument === '--shards' || str_starts_with($argument, '--shards=')) {
                $value = str_contains($argument, '=') ? substr($argument, 9) : array_shift($arguments);
                $shards = self::shards($value ?? '');
            } elseif (str_starts_with($argument, '-')) {
                throw RunnerException::usage("Unknown option {$argument}");
            } elseif (!file_exists($argument)) {
                throw RunnerException::usage("There is no test file or folder {$argument}");
            } elseif (!\in_array($argument, $paths, true)) {
                $paths[] = $argument;
            }
        }

        return new self($paths, $full, $shards, $slowest, $repeatsFailed);
    }

    private static function shards(string $number): int
    {
        if (preg_match('/^[1-9]\d?$/D', $number) !== 1 || (int) $number > self::MAX_SHARDS) {
            $maximum = self::MAX_SHARDS;

            throw RunnerException::usage("--shards needs a number from 1 to {$maximum}, not \"{$number}\"");
        }

        return (int) $number;
    }
}
