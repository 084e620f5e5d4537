<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Tests\Processes;

/** The responses of a page. Uses only this project's classes and their dependencies. */
final class Page
{
    /** @return array<string, mixed> */
    public static function answer(): array
    {
        putenv('SPINDLE_SEEN=by the page');
        $pool = new CommandPool(2);
        $outputs = [];
        foreach ($pool->runInOrder([
            Command::of('echo', 'of'),
            Command::shell('echo shell | cat'),
            Command::of('cat')->withInput(str_repeat('x', 200_000)),
            Command::of('printenv', 'SPINDLE_SEEN'),
            Command::shell('ls -l /proc/self/fd; :'),
            Command::shell('env | grep -E "^(QUERY_STRING|REQUEST_METHOD|SCRIPT_FILENAME)="'),
        ]) as $result) {
            $outputs[] = \strlen($result->stdout()) > 1000 ? \strlen($result->stdout()) : trim($result->stdout());
        }

        return ['sapi' => \PHP_SAPI, 'outputs' => $outputs, 'launchers' => \count(Processes::launchers())];
    }
}
