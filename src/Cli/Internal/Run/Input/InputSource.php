<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\FileType;
use Spindle\Internal\Warnings;

/** Source of records: the arguments after `:::`, a file, or standard input. Records are read on demand. */
final class InputSource
{
    private const READ_SIZE = 1 << 16;
    private const ADVICE = 'give input through a pipe, from a file (-a FILE; -a - reads the terminal),'
        . ' or as arguments (::: ARGUMENT...)';

    private bool $hasHeader = false;

    /** Bytes that were read beyond the header, from a stream that can't seek back. */
    private string $unread = '';

    /**
     * @param string           $recordName name for one record in messages, such as "argument"
     * @param list<string>     $arguments  the records if $stream is null
     * @param resource|null    $stream
     * @param non-empty-string $separator
     */
    private function __construct(
        public readonly string $recordName,
        private readonly array $arguments,
        private readonly mixed $stream,
        private readonly string $separator,
    ) {}

    /** @param list<string> $arguments */
    public static function arguments(array $arguments): self
    {
        return new self('argument', $arguments, null, "\0");
    }

    /**
     * @param non-empty-string $separator
     *
     * @throws UsageException when the file can't be opened
     */
    public static function file(string $path, string $separator): self
    {
        if ($path === '-') {
            return new self('input line', [], self::openStandardInput(), $separator);
        }
        error_clear_last();
        $stream = is_dir($path) ? false : self::open($path);
        if ($stream === false) {
            $reason = is_dir($path) ? 'it is a folder' : strtolower(Warnings::lastReason("it can't be opened"));

            throw new UsageException("option --arg-file: can't read '{$path}': {$reason}");
        }
        if (!FileType::isRegular($stream) && FileType::streamPath($path) === $path) {
            // In blocking mode, PHP would wait until a FIFO has all requested bytes. No other process shares this open
            // file, so the mode affects only this process.
            stream_set_blocking($stream, false);
        }

        return new self('input line', [], $stream, $separator);
    }

    /**
     * Opens a file. If the path names a descriptor, opens that file again if possible, to get a separate position.
     *
     * @return resource|false
     */
    private static function open(string $path): mixed
    {
        $file = is_file($path) ? @fopen($path, 'r') : false;

        return $file === false ? @fopen(FileType::streamPath($path), 'r') : $file;
    }

    /**
     * @param non-empty-string $separator
     *
     * @throws UsageException when standard input is a terminal or closed
     */
    public static function standardInput(string $separator): self
    {
        $stream = self::openStandardInput();
        if (stream_isatty($stream)) {
            throw new UsageException('standard input is a terminal; ' . self::ADVICE);
        }

        return new self('input line', [], $stream, $separator);
    }

    /**
     * Removes and returns the first record; null if there is none. Blocks the event loop until the record is complete.
     * Must be called before the records are counted or read.
     *
     * @throws UsageException when the record is too long or can't be read
     */
    public function header(): ?string
    {
        $this->hasHeader = true;
        if ($this->stream === null) {
            return $this->arguments[0] ?? null;
        }
        $start = FileType::isRegular($this->stream) ? (int) ftell($this->stream) : null;
        stream_set_read_buffer($this->stream, 0);
        while (!str_contains($this->unread, $this->separator) && !feof($this->stream)) {
            [$readable, $none] = [[$this->stream], []];
            @stream_select($readable, $none, $none, null);
            $this->unread .= self::readFrom($this->stream, self::READ_SIZE, 0);
            if (\strlen($this->unread) > RecordSplitter::MAX_RECORD_BYTES + self::READ_SIZE) {
                throw self::tooLong(1);
            }
        }
        if ($this->unread === '') {
            return null;
        }
        [$header, $rest] = explode($this->separator, $this->unread, 2) + [1 => ''];
        $this->unread = $rest;
        if ($start !== null) {
            fseek($this->stream, (int) ftell($this->stream) - \strlen($rest));
            $this->unread = '';
        }

        return $header;
    }

    /**
     * Counts the arguments, or the records of a regular file. Returns null for any other stream, and for a separator of
     * several bytes, because a read can end inside such a separator. Also returns null when $wait is stopped.
     */
    public function count(InputWait $wait): ?int
    {
        if ($this->stream === null) {
            return max(0, \count($this->arguments) - ($this->hasHeader ? 1 : 0));
        }
        if (!FileType::isRegular($this->stream) || \strlen($this->separator) > 1) {
            return null;
        }
        $start = (int) ftell($this->stream);
        $count = 0;
        $last = $this->separator;
        while (($bytes = (string) @fread($this->stream, self::READ_SIZE << 4)) !== '') {
            $count += substr_count($bytes, $this->separator);
            $last = $bytes[-1];
            $wait->letLoopRun();
            if ($wait->isStopped()) {
                return null;
            }
        }
        fseek($this->stream, $start);

        return $count + ($last === $this->separator ? 0 : 1);
    }

    /**
     * Yields the records. Ends early when $wait is stopped. A stream can be read only once.
     *
     * @return \Generator<int, string> records by number, starting at 1
     *
     * @throws UsageException when the input can't be read
     */
    public function records(InputWait $wait): \Generator
    {
        $number = 0;
        foreach ($this->pieces($wait) as $records) {
            foreach ($records as $record) {
                if ($wait->isStopped()) {
                    return;
                }
                yield ++$number => $record;
            }
        }
    }

    /** @return non-empty-string|null the separator; null if it has several bytes: {@see texts()} needs one byte */
    public function textSeparator(): ?string
    {
        return \strlen($this->separator) === 1 ? $this->separator : null;
    }

    /**
     * Yields a text for each read, with zero or more complete records. Each record ends with {@see textSeparator()}.
     *
     * @return \Generator<int, string>
     *
     * @throws UsageException when the input can't be read
     */
    public function texts(InputWait $wait): \Generator
    {
        if ($this->stream === null) {
            yield implode($this->separator, [...$this->givenArguments(), '']);

            return;
        }
        $number = 0;
        $splitter = new RecordSplitter($this->separator);
        foreach ($this->bytes($wait, $number) as $bytes) {
            $text = $splitter->pushText($bytes);
            $number += substr_count($text, $this->separator);
            yield $text;
            if ($splitter->isTooLong()) {
                throw self::tooLong($number + 1);
            }
        }
        foreach ($wait->isStopped() ? [] : $splitter->end() as $last) {
            yield "{$last}{$this->separator}";
        }
    }

    /**
     * Yields a list for each read: the records that this read has completed.
     *
     * @return \Generator<int, list<string>>
     *
     * @throws UsageException when the input can't be read
     */
    private function pieces(InputWait $wait): \Generator
    {
        if ($this->stream === null) {
            yield $this->givenArguments();

            return;
        }
        $splitter = new RecordSplitter($this->separator);
        $number = 0;
        foreach ($this->bytes($wait, $number) as $bytes) {
            $records = $splitter->push($bytes);
            $number += \count($records);
            yield $records;
            if ($splitter->isTooLong()) {
                throw self::tooLong($number + 1);
            }
        }
        if (!$wait->isStopped()) {
            yield $splitter->end();
        }
    }

    /**
     * Yields the bytes of a stream as they are read. Ends early when $wait is stopped.
     *
     * @param int          $number number of complete records so far, for messages; the caller updates this number
     * @param positive-int $size   largest number of bytes of one read
     *
     * @return \Generator<int, string>
     *
     * @throws UsageException when the input can't be read
     */
    public function bytes(InputWait $wait, int &$number = 0, int $size = self::READ_SIZE): \Generator
    {
        \assert($this->stream !== null);
        if ($this->unread !== '') {
            yield $this->unread;
            $this->unread = '';
        }
        $isFile = FileType::isRegular($this->stream);
        stream_set_read_buffer($this->stream, 0);
        while (true) {
            $isFile ? $wait->letLoopRun() : $wait->untilReadable($this->stream);
            if ($wait->isStopped()) {
                return;
            }
            $bytes = self::readFrom($this->stream, $size, $number);
            if ($bytes !== '') {
                yield $bytes;
            } elseif (feof($this->stream)) {
                return;
            }
        }
    }

    public static function isStandardInput(string $path): bool
    {
        return preg_match('~^(?:-|php://(?:stdin|fd/0+))$~D', FileType::streamPath($path)) === 1;
    }

    /**
     * @param resource     $stream
     * @param positive-int $size
     */
    private static function readFrom(mixed $stream, int $size, int $number): string
    {
        error_clear_last();
        $bytes = @fread($stream, $size);
        if ($bytes === false || ($bytes === '' && error_get_last() !== null)) {
            throw new UsageException(
                "can't read the input after line {$number}: " . Warnings::lastReason('unknown error'),
            );
        }

        return $bytes;
    }

    /** @return list<string> */
    private function givenArguments(): array
    {
        return $this->hasHeader ? \array_slice($this->arguments, 1) : $this->arguments;
    }

    /** @return resource */
    private static function openStandardInput(): mixed
    {
        $stream = @fopen('php://stdin', 'r');
        $file = $stream === false ? false : @fstat($stream);
        // If standard input was closed at the start of PHP, descriptor 0 is PHP's script file.
        $script = @stat(get_included_files()[0]);
        if (
            $stream === false
            || $file === false
            || FileType::isOpcacheLock(0)
            || ($script !== false && [$file['dev'], $file['ino']] === [$script['dev'], $script['ino']])
        ) {
            throw new UsageException('standard input is closed; ' . self::ADVICE);
        }

        return $stream;
    }

    /** @param string $with text after the line number, about other lines of the same record; '' for none */
    public static function tooLong(int $number, string $with = ''): UsageException
    {
        return new UsageException(\sprintf(
            'input line %d%s is longer than %d MiB, the limit for one line',
            $number,
            $with,
            RecordSplitter::MAX_RECORD_BYTES >> 20,
        ));
    }
}
