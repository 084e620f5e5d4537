<?php

declare(strict_types=1);

namespace Spindle\Tests;

trait ReadsErrorLog
{
    use OwnDirectory;

    /**
     * @param \Closure(): mixed $act
     *
     * @return list<string> lines added to PHP's error log during the call
     */
    protected function errorLogOf(\Closure $act): array
    {
        $before = ini_set('error_log', $this->path('error.log'));
        try {
            $act();
        } finally {
            ini_set('error_log', (string) $before);
        }

        return is_file($this->path('error.log')) ? Text::lines($this->path('error.log')) : [];
    }
}
