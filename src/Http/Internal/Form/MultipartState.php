<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

/** The part of the body in which a {@see MultipartParser} reads. */
enum MultipartState
{
    case Preamble;
    case Boundary;
    case Head;
    case Data;
    case Epilogue;
}
