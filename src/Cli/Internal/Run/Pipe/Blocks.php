<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Pipe;

use Spindle\Cli\Internal\Run\Input\InputSource;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\UsageException;

final class Blocks
{
    private const READ_SIZE = 1 << 20;

    public string $header = '';

    /** Position in the input where the block of the last yielded piece starts. The piece ends at $end. */
    public int $start = 0;
    public int $end = 0;

    /** @param bool $skipsBlank whether blocks of white space are skipped */
    public function __construct(
        private readonly InputSource $source,
        private readonly BlockSplitter $splitter,
        private readonly RecordEnds $ends,
        private readonly ?Header $headerForm,
        private readonly bool $removesSeparators,
        private readonly bool $skipsBlank,
    ) {}

    /** Names a range of bytes in messages. $start counts from 0; the message counts from 1, as tail -c +N does. */
    public static function describe(int $start, int $end, string $input): string
    {
        return 'bytes ' . ($start + 1) . " to {$end} of {$input}";
    }

    /**
     * Yields each block, without the header. Ends early when $wait is stopped. Can be called once.
     *
     * @return \Generator<bool, string> pieces of blocks; the key is true for the last piece of a block
     *
     * @throws UsageException when the input can't be read or split
     */
    public function read(InputWait $wait): \Generator
    {
        $isFirst = true;
        foreach ($this->split($wait) as $isLast => $block) {
            if ($wait->isStopped()) {
                return;
            }
            $this->end = \strlen($this->header) + $this->splitter->position();
            $this->start = $isFirst ? $this->end - \strlen($block) : $this->start;
            $isFirst = $isLast;
            if (!$this->skipsBlank || trim($block) !== '') {
                yield $isLast => $this->removesSeparators ? $this->ends->withoutSeparators($block) : $block;
            }
        }
    }

    /** @return \Generator<bool, string> */
    private function split(InputWait $wait): \Generator
    {
        $header = $this->headerForm;
        $beginning = '';
        foreach ($this->source->bytes($wait, size: self::READ_SIZE) as $bytes) {
            if ($header !== null) {
                $beginning .= $bytes;
                if (!$header->canBeFoundIn($beginning)) {
                    continue;
                }
                $bytes = $this->withoutHeader($header, $beginning);
                $header = null;
            }
            yield from $this->splitter->push($bytes);
        }
        if ($header !== null) {
            yield from $this->splitter->push($this->withoutHeader($header, $beginning));
        }
        yield from $this->splitter->end();
    }

    private function withoutHeader(Header $header, string $beginning): string
    {
        $this->header = $header->find($beginning);

        return substr($beginning, \strlen($this->header));
    }
}
