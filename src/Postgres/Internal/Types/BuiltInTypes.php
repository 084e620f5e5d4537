<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/**
 * Types that need not be loaded, because their OIDs (type numbers) are the same in every database.
 *
 * @see https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat
 */
final class BuiltInTypes
{
    /** Kind of the values (a constant of {@see Types}) and name of the type, by OID. OID 0 is an unknown type. */
    public const SCALARS = [
        0 => [Types::TEXT, 'an unknown type'], 16 => [Types::BOOL, 'boolean'], 17 => [Types::BYTEA, 'bytea'],
        18 => [Types::TEXT, '"char"'], 19 => [Types::TEXT, 'name'], 20 => [Types::INT, 'bigint'],
        21 => [Types::INT, 'smallint'], 22 => [Types::TEXT, 'int2vector'], 23 => [Types::INT, 'integer'],
        24 => [Types::TEXT, 'regproc'], 25 => [Types::TEXT, 'text'], 26 => [Types::INT, 'oid'],
        27 => [Types::TEXT, 'tid'], 28 => [Types::TEXT, 'xid'], 29 => [Types::TEXT, 'cid'],
        30 => [Types::TEXT, 'oidvector'], 114 => [Types::OTHER, 'json'], 142 => [Types::TEXT, 'xml'],
        194 => [Types::TEXT, 'pg_node_tree'], 600 => [Types::TEXT, 'point'], 601 => [Types::TEXT, 'lseg'],
        602 => [Types::TEXT, 'path'], 603 => [Types::TEXT, 'box'], 604 => [Types::TEXT, 'polygon'],
        628 => [Types::TEXT, 'line'], 650 => [Types::TEXT, 'cidr'], 700 => [Types::FLOAT, 'real'],
        701 => [Types::FLOAT, 'double precision'], 705 => [Types::TEXT, 'unknown'], 718 => [Types::TEXT, 'circle'],
        774 => [Types::TEXT, 'macaddr8'], 790 => [Types::TEXT, 'money'], 829 => [Types::TEXT, 'macaddr'],
        869 => [Types::TEXT, 'inet'], 1033 => [Types::TEXT, 'aclitem'], 1042 => [Types::TEXT, 'character'],
        1043 => [Types::TEXT, 'character varying'], 1082 => [Types::OTHER, 'date'],
        1083 => [Types::TEXT, 'time without time zone'], 1114 => [Types::OTHER, 'timestamp without time zone'],
        1184 => [Types::OTHER, 'timestamp with time zone'], 1186 => [Types::OTHER, 'interval'],
        1266 => [Types::TEXT, 'time with time zone'], 1560 => [Types::TEXT, 'bit'],
        1562 => [Types::TEXT, 'bit varying'], 1700 => [Types::TEXT, 'numeric'], 1790 => [Types::TEXT, 'refcursor'],
        2202 => [Types::TEXT, 'regprocedure'], 2203 => [Types::TEXT, 'regoper'], 2204 => [Types::TEXT, 'regoperator'],
        2205 => [Types::TEXT, 'regclass'], 2206 => [Types::TEXT, 'regtype'], 2249 => [Types::TEXT, 'record'],
        2275 => [Types::TEXT, 'cstring'], 2278 => [Types::TEXT, 'void'], 2950 => [Types::TEXT, 'uuid'],
        2970 => [Types::TEXT, 'txid_snapshot'], 3220 => [Types::TEXT, 'pg_lsn'], 3361 => [Types::TEXT, 'pg_ndistinct'],
        3402 => [Types::TEXT, 'pg_dependencies'], 3614 => [Types::TEXT, 'tsvector'], 3615 => [Types::TEXT, 'tsquery'],
        3642 => [Types::TEXT, 'gtsvector'], 3734 => [Types::TEXT, 'regconfig'], 3769 => [Types::TEXT, 'regdictionary'],
        3802 => [Types::OTHER, 'jsonb'], 4072 => [Types::TEXT, 'jsonpath'], 4089 => [Types::TEXT, 'regnamespace'],
        4096 => [Types::TEXT, 'regrole'], 4191 => [Types::TEXT, 'regcollation'],
        4600 => [Types::TEXT, 'pg_brin_bloom_summary'], 4601 => [Types::TEXT, 'pg_brin_minmax_multi_summary'],
        5017 => [Types::TEXT, 'pg_mcv_list'], 5038 => [Types::TEXT, 'pg_snapshot'], 5069 => [Types::TEXT, 'xid8'],
    ];

    /** OID of the element type, by OID of the array type. */
    public const ARRAYS = [
        143 => 142, 199 => 114, 271 => 5069, 629 => 628, 651 => 650, 719 => 718, 775 => 774, 791 => 790, 1000 => 16,
        1001 => 17, 1002 => 18, 1003 => 19, 1005 => 21, 1006 => 22, 1007 => 23, 1008 => 24, 1009 => 25, 1010 => 27,
        1011 => 28, 1012 => 29, 1013 => 30, 1014 => 1042, 1015 => 1043, 1016 => 20, 1017 => 600, 1018 => 601,
        1019 => 602, 1020 => 603, 1021 => 700, 1022 => 701, 1027 => 604, 1028 => 26, 1034 => 1033, 1040 => 829,
        1041 => 869, 1115 => 1114, 1182 => 1082, 1183 => 1083, 1185 => 1184, 1187 => 1186, 1231 => 1700, 1263 => 2275,
        1270 => 1266, 1561 => 1560, 1563 => 1562, 2201 => 1790, 2207 => 2202, 2208 => 2203, 2209 => 2204, 2210 => 2205,
        2211 => 2206, 2287 => 2249, 2949 => 2970, 2951 => 2950, 3221 => 3220, 3643 => 3614, 3644 => 3642, 3645 => 3615,
        3735 => 3734, 3770 => 3769, 3807 => 3802, 3905 => 3904, 3907 => 3906, 3909 => 3908, 3911 => 3910, 3913 => 3912,
        3927 => 3926, 4073 => 4072, 4090 => 4089, 4097 => 4096, 4192 => 4191, 5039 => 5038, 6150 => 4451, 6151 => 4532,
        6152 => 4533, 6153 => 4534, 6155 => 4535, 6157 => 4536,
    ];

    /** Name of the range type and OID of its bounds' type, by OID of the range type. */
    public const RANGES = [
        3904 => ['int4range', 23], 3906 => ['numrange', 1700], 3908 => ['tsrange', 1114], 3910 => ['tstzrange', 1184],
        3912 => ['daterange', 1082], 3926 => ['int8range', 20],
    ];

    /** Name of the multirange type and OID of its range type, by OID of the multirange type. */
    public const MULTIRANGES = [
        4451 => ['int4multirange', 3904], 4532 => ['nummultirange', 3906], 4533 => ['tsmultirange', 3908],
        4534 => ['tstzmultirange', 3910], 4535 => ['datemultirange', 3912], 4536 => ['int8multirange', 3926],
    ];

    /** OID of the type box. Arrays of boxes have the delimiter ";". Arrays of other built-in types have a comma. */
    public const BOX = 603;
}
