<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** What there is to measure. */
enum Measurement: string
{
    case Crud = 'crud';
    case Latency = 'latency';
    case Sleep = 'sleep';
    case Certificates = 'certificates';
    case Bulk = 'bulk';
}
