<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Internal\Message\ForwardOnly;

/** The body of a response, decompressed while it is read. */
final class InflatedBody implements StreamInterface
{
    use ForwardOnly;

    /** Compressed bytes per step. A step returns at most about a thousand times as many: RFC 1951. */
    private const STEP_BYTES = 4096;

    private readonly \InflateContext $inflate;
    private string $output = '';
    private int $offset = 0;
    private int $position = 0;
    private bool $isComplete = false;

    public function __construct(
        private readonly StreamInterface $source,
        private readonly OutgoingRequest $request,
        private readonly int $maxContentBytes,
    ) {
        $inflate = inflate_init(\ZLIB_ENCODING_GZIP);
        $this->inflate = $inflate === false ? throw new \RuntimeException('zlib could not allocate memory') : $inflate;
    }

    /** @throws InvalidResponseException when the contents are too long or not compressed */
    public function getContents(): string
    {
        $contents = '';
        while (!$this->eof()) {
            $contents .= $this->read(65_536);
            if (\strlen($contents) > $this->maxContentBytes) {
                $this->close();

                throw InvalidResponseException::of(
                    $this->request,
                    "the decompressed body is longer than {$this->maxContentBytes} bytes"
                        . ' (RequestOptions::$maxContentBytes)',
                );
            }
        }

        return $contents;
    }

    public function read(int $length): string
    {
        while ($this->offset === \strlen($this->output) && !$this->source->eof()) {
            $this->step($this->source->read(self::STEP_BYTES));
        }
        $bytes = substr($this->output, $this->offset, $length);
        $this->offset += \strlen($bytes);
        $this->position += \strlen($bytes);

        return $bytes;
    }

    public function eof(): bool
    {
        if ($this->offset < \strlen($this->output)) {
            return false;
        }
        while ($this->offset === \strlen($this->output)) {
            if ($this->source->eof()) {
                return true;
            }
            $this->step($this->source->read(self::STEP_BYTES));
        }

        return false;
    }

    public function tell(): int
    {
        return $this->position;
    }

    public function close(): void
    {
        [$this->output, $this->offset] = ['', 0];
        $this->source->close();
    }

    private function step(string $bytes): void
    {
        [$this->output, $this->offset] = ['', 0];
        if ($bytes !== '' && !$this->isComplete) {
            $output = @inflate_add($this->inflate, $bytes);
            if ($output === false) {
                throw InvalidResponseException::of($this->request, 'the body is not compressed with gzip');
            }
            $this->output = $output;
            $this->isComplete = inflate_get_status($this->inflate) === \ZLIB_STREAM_END;
        }
        if (!$this->isComplete && $this->source->eof()) {
            throw InvalidResponseException::of($this->request, 'the compressed body ends too early');
        }
    }
}
