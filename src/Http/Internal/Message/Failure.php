<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\ResponseInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Response;

/** What is answered when a handler throws: the same wherever it runs. */
final class Failure
{
    private function __construct() {}

    public static function answer(\Throwable $failure, Head $head, LoggerInterface $logger): ResponseInterface
    {
        if ($failure instanceof HttpException) {
            return Response::text(($failure->getMessage() !== '' ? $failure->getMessage() : Status::reason($failure->status)) . "\n", $failure->status, $failure->headers);
        }
        $logger->error("The handler of {method} {target} failed: {$failure->getMessage()}", ['method' => $head->method, 'target' => $head->target, 'exception' => $failure]);

        return Response::text("Internal Server Error\n", 500);
    }
}
