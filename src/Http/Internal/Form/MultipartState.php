<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The section of the body that a {@see MultipartParser} is reading. */
enum MultipartState
{
    case Preamble;
    case Boundary;
    case Head;
    case Data;
    case Epilogue;
}
