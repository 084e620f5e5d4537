<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;
use Psr\Log\LoggerInterface;

/** A response body that is longer than the Content-Length that the handler has set. The rest of it is not sent. */
final readonly class LengthExcess
{
    private const READ_BYTES = 65_536;

    /** @param int $produced bytes that the body has at least */
    public function __construct(private int $announced, private int $produced) {}

    /**
     * Returns the excess of a body over $length; null if no excess is known. Never reads a stream that could block.
     * Lets a generator run the code after its last `yield`.
     */
    public static function of(StreamInterface $body, ?int $length): ?self
    {
        IterableStream::finish($body);
        if ($body instanceof JoiningStream) {
            return $body->excess($length);
        }
        // If the size of the stream is known, that size was announced instead of the handler's Content-Length. Bytes
        // that were appended to the file later are no error.
        $isAnnounced = $length !== null && ($body->getSize() === 0 || StreamSize::of($body) === null);
        $mayRead = $body instanceof ContentsStream || $body->isSeekable() && $body->getSize() !== null;
        if (!$isAnnounced || !$mayRead) {
            return null;
        }
        try {
            if ($body->isSeekable() && $body->tell() !== $length) {
                $body->seek($length); // another response that sends the same body has moved its position
            }
            $more = \strlen($body->read(self::READ_BYTES));
        } catch (\Exception) { // ignored, because the response is complete
            return null;
        }

        return $more === 0 ? null : new self($length, $length + $more);
    }

    /**
     * @param array<string, string> $request context of the log entry: {@see LogFields}
     * @param LoggerInterface|null $logger null to use PHP's error log
     */
    public function log(array $request, ?LoggerInterface $logger): void
    {
        $message = "was cut off after {$this->announced} bytes, its Content-Length. Its body has at least"
            . " {$this->produced} bytes";
        $logger === null
            ? error_log("Spindle: the response to {$request['method']} {$request['target']} {$message}")
            : $logger->error("The response to {method} {target} {$message}", $request);
    }
}
