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
     * @return list<string> what PHP's error log was told meanwhile
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
