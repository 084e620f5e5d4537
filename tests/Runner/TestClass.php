<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** The tests of one class that run in one PHPUnit process. */
final readonly class TestClass
{
    /**
     * @param string       $file  relative to the project's folder
     * @param positive-int $tests expected number of tests
     * @param bool         $quiet whether the tests are those of the group "quiet", or all others
     */
    public function __construct(
        public string $file,
        public int $tests,
        public bool $quiet,
    ) {}

    /** Returns the file without "tests/" and ".php", for display. */
    public function name(): string
    {
        return preg_replace('/^tests\/|\.php$/', '', $this->file) . ($this->quiet ? ' (quiet)' : '');
    }
}
