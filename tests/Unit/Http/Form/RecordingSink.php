<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\MultipartParser;
use Spindle\Http\Internal\Form\MultipartSink;
use Spindle\Http\Internal\Form\Part;

/** Records a parser's results, with the pieces of data joined. */
final class RecordingSink implements MultipartSink
{
    /** @var list<array{name: string, filename: string|null, type: string|null, data: string, ended: bool}> */
    public array $parts = [];

    /** @var list<int> bytes of each piece of data */
    public array $pieces = [];

    /**
     * @param iterable<string> $pieces
     *
     * @return array{list<array{name: string, filename: string|null, type: string|null, data: string, ended: bool}>,
     *         string|null} the parts, and why the form was refused
     */
    public static function parse(string $boundary, iterable $pieces): array
    {
        $sink = new self();
        try {
            $parser = new MultipartParser($boundary, $sink);
            foreach ($pieces as $piece) {
                $parser->push($piece);
            }
            $parser->finish();
        } catch (HttpException $exception) {
            return [$sink->parts, "{$exception->status} {$exception->getMessage()}"];
        }

        return [$sink->parts, null];
    }

    public function begin(Part $part): void
    {
        $this->parts[] = [
            'name' => $part->name,
            'filename' => $part->filename,
            'type' => $part->type,
            'data' => '',
            'ended' => false,
        ];
    }

    public function data(string $bytes): void
    {
        $this->pieces[] = \strlen($bytes);
        $part = array_pop($this->parts) ?? throw new \LogicException('Data without a part');
        $part['data'] .= $bytes;
        $this->parts[] = $part;
    }

    public function end(): void
    {
        $part = array_pop($this->parts) ?? throw new \LogicException('The end of no part');
        $part['ended'] = !$part['ended'] ? true : throw new \LogicException('A part ended twice');
        $this->parts[] = $part;
    }
}
