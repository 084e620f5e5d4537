<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/** Measurements of the aircraft application. */
enum Measurement: string
{
    case Crud = 'crud';
    case Latency = 'latency';
    case Sleep = 'sleep';
    case Certificates = 'certificates';
    case Bulk = 'bulk';
}
