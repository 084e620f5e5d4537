<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Middleware;

use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;

trait ReadsErrorLog
{
    use OwnDirectory;

    /**
     * @param \Closure(): mixed $act
     *
     * @return list<string> lines added to PHP's error log during the call
     */
    private function errorLogOf(\Closure $act): array
    {
        $before = ini_set('error_log', $this->path('error.log'));
        try {
            $act();
        } finally {
            ini_set('error_log', (string) $before);
        }

        return Text::lines($this->path('error.log'));
    }
}
