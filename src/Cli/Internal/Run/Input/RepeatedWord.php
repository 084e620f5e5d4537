<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

final class RepeatedWord
{
    public bool $hasList = false; // whether a list, such as {}, is in the word itself

    public bool $hasInnerList = false; // whether a list is in an expansion inside of the word, such as $(...)

    /**
     * @param int        $start  index of the word's first item in the items of {@see RepeatedWords}
     * @param OpenQuotes $quotes quotes around the start of the word
     */
    public function __construct(public readonly int $start, public readonly OpenQuotes $quotes) {}
}
