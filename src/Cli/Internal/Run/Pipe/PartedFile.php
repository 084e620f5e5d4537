<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\UsageException;

/** A file whose parts are the blocks of jobs. */
final class PartedFile
{
    private const READ_SIZE = 1 << 16;

    public readonly int $size;

    /**
     * @param string   $path   absolute
     * @param resource $stream
     */
    private function __construct(public readonly string $path, private readonly mixed $stream)
    {
        fseek($stream, 0, \SEEK_END);
        $this->size = (int) ftell($stream);
    }

    /** @throws UsageException when the file can't be read, or is not a regular file */
    public static function open(string $path): self
    {
        $file = is_file($path) ? @fopen($path, 're') : false;
        if ($file === false) {
            throw new UsageException(
                "option --pipe-part: '{$path}' is not a file whose parts can be read; use --pipe with < FILE",
            );
        }

        return new self((string) realpath($path), $file);
    }

    /** Returns the header of the file; '' for none. */
    public function header(?Header $form): string
    {
        $beginning = '';
        if ($form !== null) {
            foreach ($this->bytes(0) as $bytes) {
                $beginning .= $bytes;
                if ($form->isWithin($beginning)) {
                    break;
                }
            }
        }

        return $form?->in($beginning) ?? '';
    }

    /**
     * @return \Generator<int, string> the bytes from a position, without meaningful keys
     *
     * @throws UsageException when the file can't be read
     */
    public function bytes(int $from): \Generator
    {
        fseek($this->stream, $from);
        while (($bytes = @fread($this->stream, self::READ_SIZE)) !== '') {
            yield $bytes === false ? throw new UsageException("can't read '{$this->path}'") : $bytes;
        }
    }
}
