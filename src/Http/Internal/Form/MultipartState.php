<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

enum MultipartState
{
    case Preamble;
    case Boundary;
    case Head;
    case Data;
    case Epilogue;
}
