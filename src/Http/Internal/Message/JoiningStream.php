<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\StreamInterface;

/** A body in pieces. One read can return several pieces, and another fiber can take them while that read waits. */
interface JoiningStream extends StreamInterface
{
    /** After a piece was sent, the pieces that follow are joined for this number of nanoseconds. */
    public const JOIN_NANOSECONDS = 1_000_000;

    /**
     * Reads like {@see read()}, and joins the pieces that follow. Stops before a piece that would exceed $length or the
     * stream's own limit of joined bytes, at an empty piece, and at the time $until.
     *
     * @param int $until time by hrtime(); 0 to read only one piece
     */
    public function readJoined(int $length, int $until): string;

    /**
     * Returns the bytes that {@see readJoined()} has joined before it suspended its fiber; '' for none. When that
     * fiber continues, readJoined() joins no further pieces.
     */
    public function takeJoined(): string;

    /**
     * Returns by how many bytes the body exceeds $length; null if no excess is known. Must be called after $length
     * bytes were read.
     *
     * @param int|null $length announced bytes; null if the reader knows no length
     */
    public function excess(?int $length): ?LengthExcess;
}
