<?php

declare(strict_types=1);

// Defines functions that disable_functions has removed from PHP: RequestFunctions has the reasons. This file has to be
// loaded before all others, because any other file may call these functions, for example a file of an autoloader.

use Spindle\Http\Internal\Process\RequestFunctions;

if (!function_exists('error_log')) {
    function error_log(
        string $message,
        int $message_type = 0,
        ?string $destination = null,
        ?string $additional_headers = null,
    ): bool {
        return match (true) {
            $message_type === 1 => mail(
                (string) $destination,
                'PHP error_log message',
                $message,
                (string) $additional_headers,
            ),
            $message_type === 3 => file_put_contents((string) $destination, $message, FILE_APPEND) !== false,
            class_exists(RequestFunctions::class) => RequestFunctions::log($message),
            default => fwrite(STDERR, "{$message}\n") !== false,
        };
    }
}

if (!function_exists('set_time_limit')) {
    /** @return bool true for 0, because no limit is set; false for other limits, which are ignored */
    function set_time_limit(int $seconds): bool
    {
        return $seconds === 0;
    }
}
