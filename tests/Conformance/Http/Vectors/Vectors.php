<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Vectors;

/** All vectors, by their claims. */
final class Vectors
{
    /** @return iterable<string, Vector> */
    public static function all(): iterable
    {
        yield from RequestLines::vectors();
        yield from Targets::vectors();
        yield from Versions::vectors();
        yield from Hosts::vectors();
        yield from FieldLines::vectors();
        yield from ControlBytes::vectors();
        yield from Lengths::vectors();
        yield from Codings::vectors();
        yield from ChunkSizes::vectors();
        yield from ChunkData::vectors();
        yield from ChunkExtensions::vectors();
        yield from Trailers::vectors();
        yield from Connections::vectors();
        yield from Expectations::vectors();
        yield from Pipelines::vectors();
        yield from Limits::vectors();
    }
}
