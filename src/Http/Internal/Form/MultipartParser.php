<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/**
 * Parses a body of multipart/form-data, and passes the parts to a sink. The parser uses no stream, event loop or clock.
 *
 * The caller can split the body into calls of {@see push()} in any way. This changes only the sizes of the pieces that
 * the sink gets. The parser buffers at most one boundary or part header, and can't be used after an exception.
 *
 * Refuses bodies that another parser might split differently. Such a body has a boundary after a bare LF, other text in
 * the line of a boundary, or a boundary after the closing boundary.
 *
 * @see https://www.rfc-editor.org/rfc/rfc7578
 * @see https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1
 */
final class MultipartParser
{
    /** Maximum total bytes before the first and after the last boundary. The parser ignores these bytes. */
    private const MAX_IGNORED_BYTES = 16_384;

    private const BOUNDARY_END_PATTERN = '/^(?:--|[ \t]{0,64}+\r\n)/';

    private const PARTIAL_BOUNDARY_END_PATTERN = '/^(?:-|[ \t]{0,64}+\r?+)$/D';

    private readonly string $boundary;

    /** Unparsed bytes. The buffer starts with a line end, because the parser finds a boundary only after a line end. */
    private string $buffer = "\r\n";

    private int $offset = 0;

    /**
     * Number of bytes that consume() must still drop: "--" of the closing boundary, or the line end before the preamble
     * or a part's data. A line end stays in the buffer until then, because the next boundary may begin with it.
     */
    private int $skip = 2;

    private MultipartState $state = MultipartState::Preamble;
    private PartHeadReader $head;

    private int $ignored = 0;

    /** @throws HttpException when the boundary is invalid */
    public function __construct(string $boundary, private readonly MultipartSink $sink)
    {
        if (preg_match('@^[0-9A-Za-z\'()+_,\-./:=? ]{0,69}[0-9A-Za-z\'()+_,\-./:=?]$@D', $boundary) !== 1) {
            throw BodyErrors::malformed('The Content-Type has no valid boundary');
        }
        $this->boundary = "\n--{$boundary}";
        $this->head = new PartHeadReader();
    }

    /** @throws HttpException */
    public function push(string $bytes): void
    {
        $this->buffer = substr($this->buffer, $this->offset) . $bytes;
        $this->offset = 0;
        do {
            $hasAdvanced = match ($this->state) {
                MultipartState::Boundary => $this->readBoundaryEnd(),
                MultipartState::Head => $this->readHeadLine(),
                default => $this->readUpToBoundary(),
            };
        } while ($hasAdvanced);
    }

    /** @throws HttpException when the body is incomplete */
    public function finish(): void
    {
        if ($this->state !== MultipartState::Epilogue) {
            throw BodyErrors::malformed('The form ends before its last boundary');
        }
    }

    /** @return bool whether the boundary was found; false when more bytes are needed */
    private function readUpToBoundary(): bool
    {
        $at = strpos($this->buffer, $this->boundary, $this->offset);
        $end = $at === false ? \strlen($this->buffer) - \strlen($this->boundary) : $at - 1;
        $this->consume(max(0, $end - $this->offset));
        if ($at === false) {
            return false;
        }
        if ($this->buffer[$at - 1] !== "\r") {
            throw BodyErrors::malformed('The line before a boundary ends without CR');
        }
        if ($this->state === MultipartState::Epilogue) {
            throw BodyErrors::malformed('The form has a boundary after its closing boundary');
        }
        if ($this->state === MultipartState::Data) {
            $this->sink->end();
        }
        $this->offset = $at + \strlen($this->boundary);
        $this->state = MultipartState::Boundary;

        return true;
    }

    private function consume(int $length): void
    {
        $skipped = min($this->skip, $length);
        $bytes = substr($this->buffer, $this->offset + $skipped, $length - $skipped);
        $this->skip -= $skipped;
        $this->offset += $length;
        if ($bytes === '') {
            return;
        }
        if ($this->state === MultipartState::Data) {
            $this->sink->data($bytes);

            return;
        }
        $this->ignored += \strlen($bytes);
        if ($this->ignored > self::MAX_IGNORED_BYTES) {
            throw BodyErrors::tooMuch('The form has more than ' . self::MAX_IGNORED_BYTES . ' bytes around its parts');
        }
    }

    private function readBoundaryEnd(): bool
    {
        $bytes = substr($this->buffer, $this->offset, 80);
        if (preg_match(self::BOUNDARY_END_PATTERN, $bytes, $match) !== 1) {
            return preg_match(self::PARTIAL_BOUNDARY_END_PATTERN, $bytes) === 1
                ? false
                : throw BodyErrors::malformed('The line of a boundary has other text after the boundary');
        }
        if ($match[0] === '--') {
            $this->enter(MultipartState::Epilogue);
        } else {
            $this->offset += \strlen($match[0]);
            $this->head = new PartHeadReader();
            $this->state = MultipartState::Head;
        }

        return true;
    }

    private function readHeadLine(): bool
    {
        $end = strpos($this->buffer, "\n", $this->offset);
        if ($end === false) {
            $this->head->checkSize(\strlen($this->buffer) - $this->offset);

            return false;
        }
        $part = $this->head->addLine(substr($this->buffer, $this->offset, $end + 1 - $this->offset));
        if ($part === null) {
            $this->offset = $end + 1;

            return true;
        }
        // Keeps the line end of the empty line. If the part has no data, the next boundary begins with this line end.
        $this->offset = $end - 1;
        $this->sink->begin($part);
        $this->enter(MultipartState::Data);

        return true;
    }

    /** Enters the state Data or Epilogue. The next two bytes are not data: the line end after the header, or "--". */
    private function enter(MultipartState $state): void
    {
        $this->state = $state;
        $this->skip = 2;
    }
}
