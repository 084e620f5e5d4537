<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

final class RepeatedWord
{
    public bool $hasList = false;

    public bool $hasInnerList = false;

    /**
     * @param int        $start  position of the word's first item
     * @param OpenQuotes $quotes quotes around the start of the word
     */
    public function __construct(public readonly int $start, public readonly OpenQuotes $quotes) {}
}
