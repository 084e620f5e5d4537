<?php

declare(strict_types=1);

// Defines functions that disable_functions has removed from PHP: RequestFunctions has the reasons. This file has to be
// loaded before all others, because any other file may call these functions, for example a file of an autoloader.

use Spindle\Http\Internal\Process\RequestFunctions;

if (!function_exists('header')) {
    function header(string $header, bool $replace = true, int $response_code = 0): void
    {
        RequestFunctions::refuse('header');
    }
}

if (!function_exists('header_register_callback')) {
    function header_register_callback(callable $callback): bool
    {
        RequestFunctions::refuse('header_register_callback');
    }
}

if (!function_exists('http_response_code')) {
    /** Returns false if no status is given, because no function can have set a status. Throws if a status is given. */
    function http_response_code(int $response_code = 0): bool
    {
        return $response_code === 0 ? false : RequestFunctions::refuse('http_response_code');
    }
}

if (extension_loaded('session') && !function_exists('session_start')) {
    /** @param array<string, mixed> $options */
    function session_start(array $options = []): bool
    {
        RequestFunctions::refuse('session_start');
    }
}

if (!function_exists('setcookie')) {
    function setcookie(mixed ...$arguments): bool
    {
        RequestFunctions::refuse('setcookie');
    }
}

if (!function_exists('setrawcookie')) {
    function setrawcookie(mixed ...$arguments): bool
    {
        RequestFunctions::refuse('setrawcookie');
    }
}

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
